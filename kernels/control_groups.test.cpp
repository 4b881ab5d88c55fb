// SPDX-License-Identifier: Apache-2.0
#include "kernels/control_groups.h"

#include <fstream>
#include <sched.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "kernels/host.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

class ControlGroups : public testing::Test {
 protected:
  ~ControlGroups() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("headlab_groups_" + std::to_string(getpid()));
};

TEST_F(ControlGroups, LimitProcessorsByTheirQuotaOfTime) {
  EXPECT_EQ(processors_of_groups(root_), std::nullopt);
  write("proc/self/cgroup", "0::/batch/job\n");
  write("sys/fs/cgroup/batch/cpu.max", "max 100000\n");
  EXPECT_EQ(processors_of_groups(root_), std::nullopt);
  write("sys/fs/cgroup/batch/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(processors_of_groups(root_), 3);
  write("sys/fs/cgroup/batch/cpu.max", "100000 100000\n");  // that above it is tighter
  EXPECT_EQ(processors_of_groups(root_), 1);
  write("sys/fs/cgroup/batch/cpu.max", "1000 100000\n");
  EXPECT_EQ(processors_of_groups(root_), 1);
}

TEST_F(ControlGroups, OfVersion1LimitThemToo) {
  write("proc/self/cgroup", "7:cpu,cpuacct:/job\n5:memory:/job\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(processors_of_groups(root_), std::nullopt);
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(processors_of_groups(root_), 4);
}

TEST(UsableProcessors, AreThoseThatTheProcessMayRunOn) {
  const test::PlayedMachine own({{"HEADLAB_PROCESSORS", std::nullopt}});
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const UsableProcessors alone = usable_processors_here();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(alone.count, 1);
  EXPECT_LE(usable_processors_here().count, CPU_COUNT(&before));
  EXPECT_EQ(alone.limit, CPU_COUNT(&before) > 1 ? "affinity" : "machine");
}

}  // namespace
}  // namespace headlab
