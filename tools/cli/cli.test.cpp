// SPDX-License-Identifier: Apache-2.0
// Runs the program itself.
#include <filesystem>
#include <regex>
#include <signal.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/results/results_reader.h"
#include "kernels/cuda/status/status.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class CommandLine : public ProgramTest {};

TEST_F(CommandLine, SaysWhatItHasOfCuda) {
  const cuda::Status status = cuda::status();
  const std::string doctor = headlab({"doctor"}).out;
  const std::string build = status.built
                                ? "built with CUDA " + status.toolkit + " for " + status.code
                                : std::string("has no CUDA backend");
  for (const std::string& line : {"this build  " + build, "next        " + status.next,
                                  status.driver.empty() ? "driver      no NVIDIA driver found"
                                                        : "driver      " + status.driver}) {
    EXPECT_NE(doctor.find("\n  " + line + "\n"), std::string::npos) << line << "\n" << doctor;
  }
  if (!status.built) {
    EXPECT_NE(doctor.find("\n  cuda        not here: this build has no CUDA backend"),
              std::string::npos)
        << doctor;
  }
  for (const cuda::GpuStatus& gpu : status.gpus) {
    EXPECT_NE(doctor.find("GPU " + std::to_string(gpu.number)), std::string::npos) << doctor;
  }
}

TEST_F(CommandLine, RefusesCudaInOneLineWhereItIsNot) {
  const cuda::Status status = cuda::status();
  if (status.built && status.problem.empty()) GTEST_SKIP() << "there is a GPU here";
  const std::string problem =
      status.built ? status.problem + ", or use --backend cpu"
                   : "this build has no CUDA backend - configure with cmake --preset cuda (needs "
                     "the CUDA toolkit) or use --backend cpu";
  const ProgramResult outcome = headlab({"run", "a.toml", "--backend", "cuda"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "headlab: --backend cuda: " + problem + "\n");
  // What was asked for is not replaced in silence; auto is what may choose.
  EXPECT_EQ(headlab({"run", "a.toml", "--backend", "auto", "--quiet"}).code, 0);
}

TEST_F(CommandLine, KeepsWhatWasDoneWhenInterrupted) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = start({"run", "s.toml", "--replicates", "1000000000000", "--out", "o"});
    send(child, signal);
    ::kill(child, signal);  // as timeout(1) does: the same request again
    const ProgramResult outcome = finish(child);
    EXPECT_EQ(outcome.code, 6);
    EXPECT_TRUE(std::regex_match(
        outcome.err,
        std::regex(
            "headlab: stopping; again to quit at once\n"
            "headlab: interrupted: kept (nothing|[\\d,]+ of 1,000,000,000,000 replicates of "
            "(condition #1|conditions #0 to #1) of 2 in o/results.nc, o/summary.json; --resume "
            "continues)\n")))
        << outcome.err;
    if (outcome.err.find("nothing") != std::string::npos) {
      EXPECT_EQ(files(), std::vector<std::string>{});
      continue;
    }
    const Json json = Json::parse(contents(folder_ / "o/summary.json"));
    EXPECT_EQ(json["complete"], false);
    const StoredCondition stored = read_nodes((folder_ / "o/results.nc").string(), 0);
    std::uint64_t replicates = 0;
    for (const Node& node : stored.nodes) replicates += node.moments.count;
    EXPECT_EQ(json["conditions"][0]["replicates"], replicates);
    EXPECT_EQ(files(), (std::vector<std::string>{"o", "o/results.nc", "o/summary.json"}));
    fs::remove_all(folder_ / "o");
  }
}

TEST_F(CommandLine, SignalsThatWereIgnoredFromTheBeginningStaySo) {
  for (const int signal : {SIGINT, SIGHUP}) {
    const pid_t child =
        start({"run", "a.toml", "--replicates", "1000000000000", "--json", "b.json"}, signal);
    for (int i = 0; i < 3000 && !awaits(child, SIGTERM); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    // It waits for one, so that it would for the other.
    EXPECT_FALSE(awaits(child, signal));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(child, signal);
    send(child, SIGTERM);
    const int code = finish(child).code;
    EXPECT_NE(code, 128 + signal);
    EXPECT_NE(code, -1);
  }
}

}  // namespace
}  // namespace headlab
