// SPDX-License-Identifier: Apache-2.0
#include "engine/files/available_memory.h"

#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/files/table_file.h"
#include "engine/testing/folder_test.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

/// Without a limit but the machine's.
class AvailableMemory : public FolderTest {
 protected:
  /// Writes a file below a directory that stands for /.
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    FolderTest::write(path, text);
  }

  const test::PlayedMachine no_limit_{{"HEADLAB_MEMORY_LIMIT", std::nullopt}};
};

TEST_F(AvailableMemory, IsWhatTheSystemSays) {
  write("proc/meminfo", "MemTotal:       100 kB\nMemFree:  1 kB\nMemAvailable:    64 kB\n");
  EXPECT_EQ(available_bytes(folder_), 65536u);
}

TEST_F(AvailableMemory, IsUnlimitedWhereNothingIsSaid) {
  EXPECT_EQ(available_bytes(folder_ / "nowhere"), unlimited);
}

TEST_F(AvailableMemory, HonoursControlGroupsOfVersion2) {
  write("proc/meminfo", "MemAvailable: 1000000 kB\n");
  write("proc/self/cgroup", "0::/batch/job\n");
  write("sys/fs/cgroup/batch/memory.max", "max\n");
  write("sys/fs/cgroup/batch/memory.current", "400000\n");
  write("sys/fs/cgroup/batch/job/memory.max", "1000000\n");
  write("sys/fs/cgroup/batch/job/memory.current", "400000\n");
  EXPECT_EQ(available_bytes(folder_), 600000u);
  write("sys/fs/cgroup/batch/job/memory.stat", "anon 1\ninactive_file 150000\n");
  EXPECT_EQ(available_bytes(folder_), 750000u);
  // The group above is tighter.
  write("sys/fs/cgroup/batch/memory.max", "500000\n");
  EXPECT_EQ(available_bytes(folder_), 100000u);
  write("sys/fs/cgroup/batch/memory.max", "300000\n");
  EXPECT_EQ(available_bytes(folder_), 0u);
}

TEST_F(AvailableMemory, HonoursControlGroupsOfVersion1) {
  write("proc/meminfo", "MemAvailable: 1000000 kB\n");
  write("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
  EXPECT_EQ(available_bytes(folder_), 1024000000u);
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "70000\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "50000\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.stat", "total_inactive_file 10000\n");
  EXPECT_EQ(available_bytes(folder_), 30000u);
  // In a container the path may not be there: the root of the mount is the group.
  write("proc/self/cgroup", "4:memory:/elsewhere\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
  EXPECT_EQ(available_bytes(folder_), 3000u);
}

TEST_F(AvailableMemory, IsThereOnThisMachine) {
  EXPECT_GT(available_bytes(), 0u);
}

TEST_F(AvailableMemory, CanBeSetByHand) {
  const test::PlayedMachine limited{{"HEADLAB_MEMORY_LIMIT", std::to_string(12345)}};
  EXPECT_EQ(available_bytes(), 12345u);
  const test::PlayedMachine other{{"HEADLAB_MEMORY_LIMIT", "3GiB"}};
  EXPECT_EQ(refusal_line([] { available_bytes(); }),
            "HEADLAB_MEMORY_LIMIT: is \"3GiB\" (allowed: a number of bytes)");
}

TEST(FormatBytes, HasOneDigitAfterThePoint) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1048575), "1.0 MiB");
  EXPECT_EQ(format_bytes(13207024435), "12.3 GiB");
  EXPECT_EQ(format_bytes(unlimited), "16.0 EiB");
}

TEST_F(AvailableMemory, RequireSaysWhatToDo) {
  const test::PlayedMachine limited{{"HEADLAB_MEMORY_LIMIT", std::to_string(3 * gib)}};
  EXPECT_NO_THROW(require_memory(3 * gib, "for 2 workers", "data.n"));
  EXPECT_EQ(refusal_line([] {
              require_memory(3 * gib + 1, "for 2 workers", "data.n", "or use --threads 1",
                             "s.toml:3:1");
            }),
            "s.toml:3:1: data.n: needs 3.0 GiB of memory for 2 workers, 3.0 GiB available - lower "
            "data.n or use --threads 1");
}

TEST_F(AvailableMemory, RequireRefusesWhatOverflowedEvenWithoutALimit) {
  const test::PlayedMachine limited{{"HEADLAB_MEMORY_LIMIT", std::to_string(unlimited)}};
  EXPECT_NO_THROW(require_memory(unlimited - 1, "at all", "data.n"));
  EXPECT_THROW(require_memory(unlimited, "at all", "data.n"), InvalidInput);
}

/// A file whose numbers do not fit is named, whatever its format, before they are read.
TEST_F(AvailableMemory, RefusesADataFileByItsName) {
  write("numbers.csv", "1,2\n3,4\n5,6\n");
  write("numbers.npy", std::string("\x93NUMPY\x01\x00\x38\x00", 10) +
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}\n" +
                           std::string(12, '\0'));
  const auto refusal = [&](const std::string& file, int bytes) {
    const test::PlayedMachine limited{{"HEADLAB_MEMORY_LIMIT", std::to_string(bytes)}};
    return refusal_line([&] { read_table((folder_ / file).string()); });
  };
  const auto expected = [&](const std::string& file, const std::string& problem) {
    return (folder_ / file).string() + ": needs " + problem +
           " available - use a file of fewer rows or columns, or NPY of float32";
  };
  EXPECT_EQ(refusal("numbers.csv", 48), "accepted");
  EXPECT_EQ(refusal("numbers.csv", 47),
            expected("numbers.csv", "48 bytes of memory for its 6 numbers, 47 bytes"));
  EXPECT_EQ(refusal("numbers.npy", 12), "accepted");
  EXPECT_EQ(refusal("numbers.npy", 11),
            expected("numbers.npy", "12 bytes of memory for its 3 numbers, 11 bytes"));
}

}  // namespace
}  // namespace headlab
