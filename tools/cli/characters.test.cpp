// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/characters.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab::tools {
namespace {

bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

TEST(AsciiText, HasAFormForEverySymbol) {
  EXPECT_EQ(ascii_text("1.5 ± 0.2, bias², ≥ 0, – […]"), "1.5 +- 0.2, bias^2, >= 0, - [...]");
  EXPECT_EQ(ascii_text("▕██▌ ▏"), "|##: |");
  EXPECT_EQ(ascii_text("Müller\xff"), "M?ller?");
  EXPECT_EQ(shown("±"), "±");  // unless the program has asked for its locale
}

class Characters : public ProgramTest {
 protected:
  ProgramResult in(const std::string& locale, const std::vector<std::string>& arguments) {
    locale_ = locale;
    return headlab(arguments);
  }
};

TEST_F(Characters, FollowTheLocale) {
  for (const char* const file : {"a.toml", "s.toml"}) {
    const std::string plain = in("C", {"run", file}).out;
    EXPECT_TRUE(is_ascii(plain)) << plain;
    EXPECT_NE(plain.find("bias^2"), std::string::npos) << plain;
    EXPECT_NE(plain.find("+- is one Monte Carlo standard error"), std::string::npos) << plain;
    const std::string utf8 = in("C.UTF-8", {"run", file}).out;
    EXPECT_NE(utf8.find("bias²"), std::string::npos) << utf8;
  }
  // Columns stay columns: below a heading the cells of both conditions begin.
  const std::string table = in("C", {"run", "s.toml"}).out;
  std::istringstream lines(table);
  std::string heading;
  while (std::getline(lines, heading) && heading.find("covariance") == std::string::npos) {
  }
  const std::size_t column = heading.find("covariance");
  ASSERT_NE(column, std::string::npos) << table;
  for (int row = 0; row < 2; ++row) {
    std::string line;
    std::getline(lines, line);
    ASSERT_GT(line.size(), column) << table;
    EXPECT_EQ(line[column - 1], ' ') << table;
    EXPECT_NE(line[column], ' ') << table;
  }
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"theory", "a.toml"},
        {"run", "a.toml", "--compare"},
        {"run", "a.toml", "--replicates", "4"},
        {"allocate", "--data", "a.toml", "--budget", "4", "--replicates", "1024"},
        {"allocate", "--data", "a.toml", "--budget", "4", "--source", "exact"},
        {"validate", "identity", "--quiet"}}) {
    const ProgramResult outcome = in("C", arguments);
    EXPECT_NE(outcome.out, "");
    EXPECT_TRUE(is_ascii(outcome.out)) << outcome.out;
    EXPECT_TRUE(is_ascii(outcome.err)) << outcome.err;
  }
}

TEST_F(Characters, OfFilesAndJsonAreUtf8Everywhere) {
  const std::vector<std::string> arguments = {
      "run", "a.toml", "--set", "scenario.name=\"Größe\"", "--json", "-"};
  const auto json = nlohmann::json::parse(in("C", arguments).out);
  EXPECT_EQ(json["conditions"][0]["parameters"]["scenario"]["name"], "Größe");
  EXPECT_EQ(in("C", {"run", "a.toml", "--set", "scenario.name=\"Größe\""}).out.substr(0, 6),
            "Gr??e\n");
  EXPECT_EQ(in("C", {"run", "größe.toml"}).err,
            "headlab: gr??e.toml: cannot be opened: No such file or directory\n");
}

}  // namespace
}  // namespace headlab::tools
