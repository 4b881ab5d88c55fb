// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <vector>

#include <gtest/gtest.h>

#include "engine/scenario/world.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

constexpr int file_rows = 4096;
constexpr int file_columns = 256;
constexpr long file_kib = file_rows * file_columns * 4 / 1024;

/// A data file of float32, and a scenario of heads on it.
class FileMemory : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(file_rows) + ", " + std::to_string(file_columns) + "), }";
    header.append(127 - 10 - header.size(), ' ');
    header += '\n';
    std::ofstream out(folder_ / "tokens.npy", std::ios::binary);
    out << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0'
        << header;
    std::mt19937 random(7);
    std::vector<float> row(file_columns);
    for (int i = 0; i < file_rows; ++i) {
      for (float& x : row) x = static_cast<float>(random()) / 4294967296.0f - 0.5f;
      out.write(reinterpret_cast<const char*>(row.data()), file_columns * sizeof(float));
    }
    std::ofstream(folder_ / "tokens.toml")
        << World{.n = "8",
                 .design = R"({ law = "file", path = "tokens.npy" })",
                 .regression = R"({ law = "random_cosines", length_scale = 4.0, terms = 4 })",
                 .heads = "count = 2\ndim = 2\nsubspaces = { law = \"orthogonal\" }",
                 .kernel = R"({ law = "softmax", temperature = 1.0 })",
                 .queries = "law = \"design\"\ncount = 2",
                 .run = "replicates = 32"}
               .text();
  }

  /// Most memory [KiB] that a command took.
  long peak_kib(const std::vector<std::string>& arguments) const {
    const pid_t child = start(arguments);
    int status = 0;
    rusage usage = {};
    ::wait4(child, &status, 0, &usage);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << contents(folder_ / ".err");
    return usage.ru_maxrss;
  }
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr long limit_kib = file_kib * 3 / 2 + 200 * 1024;

TEST_F(FileMemory, ASweepHoldsItsDataFileOnce) {
  EXPECT_LT(peak_kib({"run", "tokens.toml", "--threads", "2", "--set",
                      "sweep.heads.kernel.temperature={ logspace = [0.5, 8.0, 32] }"}),
            limit_kib);
}

TEST_F(FileMemory, AnAllocationHoldsItsDataFileOnce) {
  EXPECT_LT(peak_kib({"allocate", "--data", "tokens.toml", "--budget", "48", "--replicates", "1024",
                      "--threads", "2"}),
            limit_kib);
}

TEST_F(FileMemory, ASweepKeepsLittleOfACondition) {
  // 24 MiB more than a run of one condition, as threads keep memory in reserve. 10 KiB a condition,
  // so that 10^5 take a gigabyte: 0.7 of the scenario, 1.2 of its result, 1.6 of the nodes of 8
  // replicates, 2.8 of results.nc while it is put together, the rest small arrays and texts.
  constexpr long conditions = 10000;
  std::ofstream(folder_ / "many.toml")
      << scenario_text << "[sweep]\n\"heads.kernel.bandwidth\" = { linspace = [0.1, 1, "
      << conditions << "] }\n";
  std::ofstream(folder_ / "one.toml") << scenario_text;
  const auto peak_of = [&](const char* scenario, const char* out) {
    return peak_kib({"run", scenario, "--replicates", "8", "--out", out, "--threads", "2"});
  };
  EXPECT_LT(peak_of("many.toml", "o") - peak_of("one.toml", "p"), 24 * 1024 + 10 * conditions);
}
#endif

}  // namespace
}  // namespace headlab
