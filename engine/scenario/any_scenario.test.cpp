// SPDX-License-Identifier: Apache-2.0
// Damaged scenarios: rejected in one line, or read as what they say.
#include "engine/scenario/testing/any_scenario.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/testing/paths.h"

namespace headlab {
namespace {

/// The scenarios that are shipped, small ones first in the order of their names.
std::vector<std::string> shipped() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::scenario_dir())) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<std::string> texts;
  for (const std::filesystem::path& file : files) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    if (text.str().size() < 3000) texts.push_back(text.str());
  }
  return texts;
}

TEST(AnyScenario, IsReadOrRejectedInOneLine) {
  const std::vector<std::string> texts = shipped();
  ASSERT_GT(texts.size(), 50u);
  std::vector<std::string> values = any_scenario::words();
  for (const char* value :
       {"0", "-1", "1", "3", "0.5", "1e300", "nan", "[]", "[1, 0]", "{}", "true", "\"\"",
        "[[1, 0], [0, 1]]", "{ top = 3 }", "1e18", "\n", "]", "}"}) {
    values.emplace_back(value);
  }
  std::mt19937 random(20);  // its numbers are the same everywhere
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  int read = 0;
  constexpr int count = 1500;
  for (int i = 0; i < count; ++i) {
    std::string text = texts[below(texts.size())];
    for (std::size_t damage = below(4); damage > 0 && !text.empty(); --damage) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:  // a value behind a key, or what stands there
          text.replace(text.find('=', at) == std::string::npos ? at : text.find('=', at) + 1,
                       1 + below(8), " " + values[below(values.size())]);
          break;
        case 1:
          text.insert(at, values[below(values.size())]);
          break;
        case 2:
          text.erase(at, 1 + below(30));
          break;
        default:  // a part of another scenario
          const std::string& other = texts[below(texts.size())];
          text.insert(at, other.substr(below(other.size()), 1 + below(200)));
      }
    }
    try {
      read += any_scenario::read(text) ? 1 : 0;
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\n" << text;
    }
  }
  // The control: neither all are rejected nor none.
  EXPECT_GT(read, count / 20);
  EXPECT_LT(read, count * 9 / 10);
}

TEST(AnyScenario, KnowsWhatLawsAndStagesAreCalled) {
  const std::vector<std::string> words = any_scenario::words();
  for (const char* word :
       {"law = \"ar1\"", "keep = ", "\"heads.mechanism.window\" = ", "union = "}) {
    EXPECT_EQ(std::ranges::count(words, word), 1) << word;
  }
}

}  // namespace
}  // namespace headlab
