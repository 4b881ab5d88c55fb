// SPDX-License-Identifier: Apache-2.0
// --shard and --resume of validate and allocate, by the program itself.
#include <filesystem>
#include <fstream>
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

class UnitsCommand : public ProgramTest {
 protected:
  ProgramResult map(const Words& more) const {
    Words all = {"allocate", "--map",       "--data",       "s.toml", "--budget", "4",
                 "--n",      "5,20,80,320", "--replicates", "1024",   "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return headlab(all);
  }

  /// A document without what differs from run to run.
  Json document(const std::string& name) const {
    std::ifstream file(folder_ / name);
    Json json = Json::parse(file);
    drop_times(json);
    return json;
  }

 private:
  static void drop_times(Json& json) {
    if (json.is_object()) {
      for (const char* key : {"seconds", "threads"}) json.erase(key);
    }
    if (!json.is_structured()) return;
    for (Json& part : json) drop_times(part);
  }
};

TEST_F(UnitsCommand, ShardsOfAMapAreJoinedToTheMapOfOneRun) {
  ASSERT_EQ(map({"--out", "one"}).code, 0);
  for (const std::string shard : {"2/3", "1/3", "3/3"}) {
    const ProgramResult part = map({"--out", "o", "--shard", shard});
    EXPECT_EQ(part.code, 0) << part.err;
    EXPECT_EQ(part.out, "");
  }
  EXPECT_FALSE(fs::exists(folder_ / "o/map.json"));
  const ProgramResult status = headlab({"status", "o"});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_NE(status.out.find("headlab allocate --map"), std::string::npos) << status.out;
  ASSERT_EQ(map({"--out", "o", "--resume"}).code, 0);
  EXPECT_EQ(document("o/map.json"), document("one/map.json"));
  // Once more, as a scheduler may: nothing is computed, and nothing written.
  const auto written = fs::last_write_time(folder_ / "o/map.json");
  const ProgramResult again = map({"--out", "o", "--resume"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(fs::last_write_time(folder_ / "o/map.json"), written);
  // Results that are gone are computed again.
  fs::remove(folder_ / "o/map.nc");
  EXPECT_EQ(map({"--out", "o", "--resume"}).code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "o/map.nc"));
  EXPECT_EQ(document("o/map.json"), document("one/map.json"));
  ASSERT_EQ(map({"--out", "other", "--seed", "1"}).code, 0);
  EXPECT_NE(document("other/map.json"), document("one/map.json"));
}

TEST_F(UnitsCommand, AStoppedCommandIsResumed) {
  const auto calibrate = [&](const std::string& time, const Words& more) {
    Words all = {"validate", "--calibrate", "--out", "c", "--threads", "2", "--max-time", time};
    all.insert(all.end(), more.begin(), more.end());
    return headlab(all);
  };
  const auto runs = [&] {
    std::uint64_t sum = 0;
    const Json calibration = document("c/calibration.json");
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
