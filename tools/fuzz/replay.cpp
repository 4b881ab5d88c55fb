// SPDX-License-Identifier: Apache-2.0
// The inputs of tools/fuzz/corpus once more, without libFuzzer.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "kernels/testing/paths.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

/// The inputs of a target: those of its corpus, and its seeds.
std::vector<NamedInput> inputs_of(const Target& target) {
  std::vector<NamedInput> inputs;
  const auto folder = std::filesystem::path(test::source_dir()) / "tools/fuzz/corpus" / target.name;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ostringstream bytes;
    bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
    inputs.emplace_back(file.path().filename().string(), bytes.str());
  }
  std::ranges::sort(inputs);
  if (target.seeds) {
    for (NamedInput& seed : target.seeds()) inputs.push_back(std::move(seed));
  }
  return inputs;
}

/// What is wrong with a target's answers to inputs, empty where nothing is.
std::string faults_of(const Target& target, const std::vector<NamedInput>& inputs) {
  std::string faults;
  bool read = false;
  std::string rejected;
  for (const auto& [name, bytes] : inputs) {
    try {
      const std::optional<std::string> refusal = refusal_of(target, bytes);
      if (refusal) {
        rejected = name + ": " + *refusal;
      } else {
        read = true;
      }
    } catch (const std::exception& fault) {
      faults += name + ": " + fault.what() + "\n";
    }
  }
  if (!read) faults += "no input is read, the last was rejected: " + rejected + "\n";
  if (rejected.empty()) faults += "no input is rejected\n";
  return faults;
}

class Corpus : public testing::TestWithParam<const Target*> {};

TEST_P(Corpus, IsReadOrRejectedInOneLine) {
  EXPECT_EQ(faults_of(*GetParam(), inputs_of(*GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets),
                         [](const auto& target) { return std::string(target.param->name); });

/// Reads the input "good" and makes a mistake of its own with each other.
void read_wrongly(const std::string& bytes) {
  if (bytes == "unknown") throw InvalidInput("is unknown");
  if (bytes == "lines") throw InvalidInput("is\nunknown");
  if (bytes == "bell") throw InvalidInput("is \a");
  if (bytes == "latin") throw InvalidInput("is \xe9");
  if (bytes == "silent") throw InvalidInput("");
  if (bytes == "outside") static_cast<void>(bytes.at(100));
}

TEST(CorpusNegativeControl, MistakesAreFound) {
  const Target faulty = {"faulty", read_wrongly};
  const NamedInput good = {"good", "good"}, unknown = {"unknown", "unknown"};
  EXPECT_EQ(faults_of(faulty, {good, unknown}), "");
  EXPECT_EQ(faults_of(faulty, {good}), "no input is rejected\n");
  EXPECT_EQ(faults_of(faulty, {unknown}),
            "no input is read, the last was rejected: unknown: is unknown\n");
  for (const char* mistake : {"lines", "bell", "latin", "silent", "outside"}) {
    const std::string faults = faults_of(faulty, {good, unknown, {mistake, mistake}});
    EXPECT_EQ(faults.rfind(std::string(mistake) + ": ", 0), 0u) << mistake << ": " << faults;
  }
}

#ifdef __SANITIZE_ADDRESS__
TEST(CorpusNegativeControlDeathTest, ReadingPastTheEndEndsTheProgram) {
  const Target faulty = {"faulty", [](const std::string& bytes) {
                           const std::vector<char> copy(bytes.begin(), bytes.end());
                           const volatile char* end = copy.data() + copy.size();
                           require(*end != 'x', "an x");
                         }};
  EXPECT_DEATH(refusal_of(faulty, std::string(100, 'a')), "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace headlab::fuzz
