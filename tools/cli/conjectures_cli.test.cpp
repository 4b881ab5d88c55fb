// SPDX-License-Identifier: Apache-2.0
// Claims that shipped scenarios state themselves, in the size in which they are shipped.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

class Conjectures : public ProgramTest {
 protected:
  static fs::path folder() { return fs::path(test::scenario_dir()) / "conjectures"; }

  /// Verdicts on a scenario file, with the exit code.
  std::pair<int, nlohmann::json> verdicts(const std::string& file) const {
    const ProgramResult outcome =
        headlab({"validate", file, "--threads", "2", "--quiet", "--json", "-"});
    return {outcome.code, outcome.code == 2 ? nlohmann::json(outcome.err)
                                            : nlohmann::json::parse(outcome.out)["claims"]};
  }

  /// Expects that every file of a folder has its verdicts, `least` files or more.
  void expect_expected(const fs::path& scenarios, int least) const {
    int files = 0;
    std::set<std::string> seen;
    for (const auto& entry : fs::directory_iterator(scenarios)) {
      ++files;
      const auto [code, claims] = verdicts(entry.path().string());
      EXPECT_EQ(code, 0) << entry.path() << claims;
      for (const auto& claim : claims) {
        EXPECT_EQ(claim["verdict"], claim["expected"]) << entry.path() << claim;
        seen.insert(claim["verdict"]);
      }
    }
    EXPECT_GE(files, least);
    EXPECT_EQ(seen, (std::set<std::string>{"refuted", "supported"}));
  }
};

TEST_F(Conjectures, HaveTheVerdictsExpectedOfThem) {
  expect_expected(folder(), 3);
}

TEST_F(Conjectures, OfMechanismsHaveTheVerdictsExpectedOfThem) {
  expect_expected(fs::path(test::scenario_dir()) / "mechanisms", 8);
}

// With one claim turned round the verdict turns, and the exit code says so.
TEST_F(Conjectures, FailWhereTheClaimIsTurnedRound) {
  std::string text = contents(folder() / "low_rank_bottleneck.toml");
  const std::string low = "less = { figure = \"mse\", at = { \"heads.kernel.temperature\" = 4 } }";
  ASSERT_NE(text.find(low), std::string::npos);
  text.replace(text.find(low), low.size(),
               "less = { figure = \"mse\", at = { \"heads.kernel.temperature\" = 1.414214 } }");
  std::ofstream(folder_ / "turned.toml") << text;
  const auto [code, claims] = verdicts("turned.toml");
  EXPECT_EQ(code, 3);
  EXPECT_EQ(claims[1]["verdict"], "refuted");
  EXPECT_EQ(claims[1]["expected"], "supported");
}

}  // namespace
}  // namespace headlab
