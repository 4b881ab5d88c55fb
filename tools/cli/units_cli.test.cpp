// SPDX-License-Identifier: Apache-2.0
// --shard and --resume of validate and allocate, by the program itself.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/unit_file.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

class UnitsCommand : public ProgramTest {};

TEST_F(UnitsCommand, AStoppedCommandIsResumed) {
  const auto calibrate = [&](const std::string& time, const Words& more) {
    Words all = {"validate", "--calibrate", "--out", "c", "--threads", "2", "--max-time", time};
    all.insert(all.end(), more.begin(), more.end());
    return headlab(all);
  };
  const auto runs = [&] {
    std::uint64_t sum = 0;
    const Json calibration = Json::parse(contents(folder_ / "c/calibration.json"));
    for (const Json& rate : calibration["rates"]) {
      sum += rate["trials"].get<std::uint64_t>();
    }
    return sum;
  };
  // Closed forms come first, and how long they take depends on the machine.
  const fs::path kept = folder_ / "c/units_1_of_1.nc";
  // What ends before its first part can be continued too.
  ASSERT_EQ(calibrate("0.01s", {}).code, 6);
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_EQ(calibrate("0.01s", {"--resume"}).code, 6);
  int seconds = 1;
  const auto has_parts = [&] {
    return fs::exists(kept) && !read_unit_file("status", kept.string()).units.empty();
  };
  for (; (!has_parts() || runs() == 0) && seconds < 300; seconds *= 2) {
    fs::remove_all(folder_ / "c");
    const ProgramResult stopped = calibrate(std::to_string(seconds) + "s", {});
    ASSERT_EQ(stopped.code, 6) << stopped.err;
  }
  ASSERT_TRUE(has_parts());
  const std::uint64_t before = runs();
  const ProgramResult resumed = calibrate(std::to_string(seconds) + "s", {"--resume"});
  EXPECT_EQ(resumed.code, 6) << resumed.err;
  EXPECT_NE(resumed.err.find("headlab: found "), std::string::npos) << resumed.err;
  EXPECT_EQ(resumed.err.find("found 0 "), std::string::npos) << resumed.err;
  EXPECT_GT(before, 0u);
  EXPECT_GT(runs(), 0u);
  // What nothing continues is not replaced.
  fs::remove(kept);
  EXPECT_EQ(calibrate("1s", {"--resume", "--quiet"}).err,
            "headlab: --out: c/calibration.json: is there already - write --overwrite, or choose "
            "another place\n");
}

}  // namespace
}  // namespace headlab
