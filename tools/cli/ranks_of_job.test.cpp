// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/ranks_of_job.h"

#include <map>

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

std::optional<LocalRank> with(const std::map<std::string, std::string>& variables) {
  return local_rank([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(RanksOfJob, AreNumberedOnTheirMachine) {
  EXPECT_FALSE(with({}));
  const auto mpi = with({{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  ASSERT_TRUE(mpi);
  EXPECT_EQ(mpi->rank, 3);
  EXPECT_EQ(mpi->size, 4);
  const std::map<std::string, std::string> batch = {{"SLURM_LOCALID", "0"}};
  EXPECT_FALSE(with(batch));
  std::map<std::string, std::string> step = {{"SLURM_LOCALID", "1"},
                                             {"SLURM_STEP_ID", "0"},
                                             {"SLURM_STEP_NUM_TASKS", "8"},
                                             {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}};
  ASSERT_TRUE(with(step));
  EXPECT_EQ(with(step)->rank, 1);
  EXPECT_EQ(with(step)->size, 4);
  step["SLURM_STEP_TASKS_PER_NODE"] = "4,3";
  EXPECT_EQ(with(step)->size, 0);
  EXPECT_FALSE(with({{"OMPI_COMM_WORLD_LOCAL_RANK", "three"}}));
}

TEST(RanksOfJob, ShareProcessors) {
  EXPECT_EQ(threads_of_rank({0, 8}, 64, 64), 8);   // not bound
  EXPECT_EQ(threads_of_rank({0, 8}, 32, 64), 8);   // bound to one of two sockets
  EXPECT_EQ(threads_of_rank({0, 2}, 1, 64), 1);    // bound to a core
  EXPECT_EQ(threads_of_rank({0, 16}, 4, 4), 1);    // more ranks than processors
  EXPECT_EQ(threads_of_rank({0, 0}, 64, 64), 64);  // others not known
}

TEST(RanksOfJob, ShareGpus) {
  EXPECT_EQ(gpu_of_rank({1, 4}, nullptr, 4), "1");
  EXPECT_EQ(gpu_of_rank({5, 8}, nullptr, 4), "1");
  EXPECT_EQ(gpu_of_rank({1, 4}, "4,6", 8), "6");
  EXPECT_EQ(gpu_of_rank({2, 4}, "GPU-a,GPU-b", 8), "GPU-a");
  EXPECT_EQ(gpu_of_rank({1, 4}, "2", 8), std::nullopt);  // chosen already
  EXPECT_EQ(gpu_of_rank({1, 4}, "", 8), std::nullopt);   // none is to be seen
  EXPECT_EQ(gpu_of_rank({0, 4}, nullptr, 0), std::nullopt);
  EXPECT_EQ(gpu_of_rank({0, 1}, nullptr, 4), std::nullopt);  // alone: the program chooses
}

}  // namespace
}  // namespace headlab::tools
