// SPDX-License-Identifier: Apache-2.0
// Exact controls by the program itself.
#include <cmath>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

class ControlsCommand : public ProgramTest {
 protected:
  ProgramResult controlled(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "s.toml", "--set", "run.controls=\"exact\""});
    return headlab(arguments);
  }
};

TEST_F(ControlsCommand, SaysWhatTheyBought) {
  const ProgramResult run = controlled({"--replicates", "500", "--out", "o"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find(" statistics are adjusted, and their adjustments tested"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("controls: the variance falls by a factor of "), std::string::npos)
      << run.out;
  const auto summary = nlohmann::json::parse(contents(folder_ / "o/summary.json"));
  for (const auto& condition : summary.at("conditions")) {
    const auto& controls = condition.at("controls");
    EXPECT_EQ(controls.at("pilot"), 1024);
    EXPECT_EQ(controls.at("refused"), false);
    EXPECT_GT(controls.at("tested"), 0);
    EXPECT_GT(controls.at("gain").at("mse"), 1.0);
  }
  EXPECT_FALSE(nlohmann::json::parse(headlab({"run", "a.toml", "--json", "-"}).out)
                   .at("conditions")
                   .at(0)
                   .contains("controls"));
}

TEST_F(ControlsCommand, DifferencesAreThoseOfTheFigures) {
  for (const auto& [folder, bandwidth] : {std::pair("a", "0.7"), std::pair("b", "0.9")}) {
    ASSERT_EQ(headlab({"run", "a.toml", "--set", "run.controls=\"exact\"", "--set",
                       std::string("heads.kernel.bandwidth=") + bandwidth, "--set",
                       "queries.points=[[2, 2, 1, 0]]", "--replicates", "9", "--out", folder})
                  .code,
              0);
  }
  const auto condition = [&](const std::string& folder) {
    return nlohmann::json::parse(contents(folder_ / folder / "summary.json"))["conditions"][0];
  };
  // Not every adjustment is used by so few replicates.
  EXPECT_LT(condition("a")["controls"]["tested"], condition("a")["controls"]["adjusted"]);
  const auto run = nlohmann::json::parse(headlab({"diff", "a", "b", "--json", "-"}).out);
  std::size_t found = 0;
  for (const auto& row : run.at("differences")) {
    const std::string figure = row["figure"];
    if (!condition("a").contains(figure)) continue;
    ++found;
    const double a = condition("a")[figure]["value"], b = condition("b")[figure]["value"];
    EXPECT_NEAR(std::abs(row["difference"]["value"].get<double>()), std::abs(a - b),
                1e-12 * (std::abs(a) + std::abs(b)))
        << figure;
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace headlab
