// SPDX-License-Identifier: Apache-2.0
#include "engine/shards/cut.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"

namespace headlab {
namespace {

using Variables = std::map<std::string, std::string>;

/// "3/8 by what chose it", or why nothing did.
std::string chosen(const std::string& text, const Variables& variables = {}) {
  try {
    const ShardChoice choice = choose_shard(text, [&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
    return std::to_string(choice.shard) + "/" + std::to_string(choice.shards) + " by " +
           choice.chosen_by;
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

Variables array(const std::string& task, const std::string& first, const std::string& last,
                const std::string& step = "1") {
  return {{"SLURM_ARRAY_TASK_ID", task},
          {"SLURM_ARRAY_TASK_MIN", first},
          {"SLURM_ARRAY_TASK_MAX", last},
          {"SLURM_ARRAY_TASK_STEP", step}};
}

TEST(ShardChoice, IsReadFromWords) {
  EXPECT_EQ(chosen("3/8"), "3/8 by --shard 3/8");
  for (const std::string text : {"", "3", "/8", "3/", "-1/8", "3/8/2", "1.5/8", "autos", "auto/"}) {
    EXPECT_EQ(chosen(text),
              "--shard: \"" + text + "\" is not a shard (allowed: I/N, as 3/8, auto or auto/N)");
  }
  EXPECT_EQ(chosen("0/8"), "--shard: there is no shard 0 of 8 (allowed: 1/8 to 8/8)");
  EXPECT_EQ(chosen("1/0"), "--shard: 0 shards (allowed: 1 to 1000000)");
}

TEST(ShardChoice, IsMadeByWhatStartedTheProcess) {
  Variables all = array("17", "1", "20");
  EXPECT_EQ(chosen("auto", all), "17/20 by SLURM_ARRAY_TASK_ID 17 of 1-20");
  // A batch script has rank 0 of its job, and a step of one rank chooses nothing.
  all.insert({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(chosen("auto", all), "17/20 by SLURM_ARRAY_TASK_ID 17 of 1-20");
  all.insert({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_EQ(chosen("auto", all), "17/20 by SLURM_ARRAY_TASK_ID 17 of 1-20");
  all["SLURM_STEP_NUM_TASKS"] = "4";
  all["SLURM_PROCID"] = "3";
  EXPECT_EQ(chosen("auto", all), "4/4 by SLURM_PROCID 3 of 4");
  all.insert({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}});
  EXPECT_EQ(chosen("auto", all), "2/3 by PMI_RANK 1 of 3");
  all.insert({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(chosen("auto", all), "1/2 by OMPI_COMM_WORLD_RANK 0 of 2");
  EXPECT_EQ(chosen("auto/5", all), "1/5 by OMPI_COMM_WORLD_RANK 0 of 2");
}

TEST(ShardChoice, OfAnArrayCountsItsTasks) {
  EXPECT_EQ(chosen("auto", array("6", "0", "9", "3")), "3/4 by SLURM_ARRAY_TASK_ID 6 of 0-9:3");
  Variables gaps = array("7", "1", "7");
  gaps["SLURM_ARRAY_TASK_COUNT"] = "3";
  EXPECT_EQ(chosen("auto", gaps),
            "--shard: auto: task 7 is of an array with gaps, which does not tell the number of "
            "shards - write --shard auto/N");
  // One task that is run again alone.
  EXPECT_EQ(chosen("auto/20", array("17", "17", "17")), "17/20 by SLURM_ARRAY_TASK_ID 17");
  EXPECT_EQ(chosen("auto/20", array("0", "0", "19")),
            "--shard: there is no shard 0 of 20 (allowed: 1/20 to 20/20): here by "
            "SLURM_ARRAY_TASK_ID 0");
}

TEST(ShardChoice, IsRefusedWhereNothingTells) {
  EXPECT_TRUE(chosen("auto").starts_with("--shard: auto: nothing here tells which shard - "));
  EXPECT_EQ(chosen("auto",
                   {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}),
            "1/1 by SLURM_PROCID 0 of 1");
  EXPECT_EQ(chosen("auto", array("x", "1", "2")),
            "--shard: SLURM_ARRAY_TASK_ID is \"x\", which is not a number");
}

}  // namespace
}  // namespace headlab
