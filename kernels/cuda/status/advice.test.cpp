// SPDX-License-Identifier: Apache-2.0
// The lines for what is missing or fails, of machines that are not here.
#include "kernels/cuda/status/advice.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cuda/status/status.h"

namespace headlab::cuda {
namespace {

constexpr const char* cuda_13 = "75 80 86 87 88 89 90 100 103 110 120 121";
constexpr const char* cuda_12 = "50 52 53 60 61 62 70 72 75 80 86 87 89 90";

BuildFacts build_of(const std::string& code, const std::string& least = "80",
                    const std::string& toolkit = "13.0", const std::string& offered = cuda_13) {
  return parse_build_facts(toolkit, code, offered, least);
}

TEST(Advice, ReadsTheFactsOfABuild) {
  const BuildFacts build = build_of("sm_80 sm_90a compute_120");
  EXPECT_EQ(code_names(build), "sm_80, sm_90a, PTX of compute_120");
  EXPECT_EQ(build.offered.size(), 12u);
  EXPECT_EQ(build.offered.back(), (Capability{12, 1}));
  EXPECT_EQ(build.least, (Capability{8, 0}));
  EXPECT_EQ(sm_name({10, 3}), "sm_103");
  EXPECT_EQ(cuda_version(13000), "13.0");
  EXPECT_EQ(cuda_version(12090), "12.9");
  for (const char* code : {"80", "sm_", "sm_9", "sm_90x", "sm_90ab", "sm_-90", "SM_90"}) {
    EXPECT_THROW(build_of(code), std::invalid_argument) << code;
  }
  EXPECT_THROW(build_of("sm_80", "80a"), std::invalid_argument);
}

TEST(Advice, KnowsWhatRunsWhere) {
  struct Row {
    const char* code;
    Capability gpu;
    bool runs;
  };
  const std::vector<Row> table = {
      {"sm_80", {8, 0}, true},          {"sm_80", {8, 9}, true},
      {"sm_80", {9, 0}, false},         {"sm_80", {7, 5}, false},
      {"sm_86", {8, 0}, false},         {"compute_80", {8, 0}, true},
      {"compute_80", {9, 0}, true},     {"compute_90", {12, 1}, true},
      {"compute_90", {8, 9}, false},    {"sm_90a", {9, 0}, true},
      {"sm_90a", {9, 1}, false},        {"compute_90a", {9, 0}, true},
      {"compute_90a", {10, 0}, false},  {"sm_100f", {10, 3}, true},
      {"compute_100f", {12, 0}, false},
  };
  for (const Row& row : table) {
    EXPECT_EQ(code_problem(build_of(row.code, "70"), row.gpu).empty(), row.runs)
        << row.code << " on " << sm_name(row.gpu);
  }
}

TEST(Advice, NamesTheArchitectureToBuildFor) {
  EXPECT_EQ(code_problem(build_of("sm_80 sm_90 compute_90"), {8, 9}), "");
  EXPECT_EQ(code_problem(build_of("sm_80 sm_90 compute_90"), {10, 0}), "");
  EXPECT_EQ(code_problem(build_of("sm_90"), {8, 9}),
            "built for sm_90; this GPU is sm_89 - rebuild with -DCMAKE_CUDA_ARCHITECTURES=89");
  EXPECT_EQ(code_problem(build_of("sm_80 sm_90"), {12, 0}),
            "built for sm_80, sm_90; this GPU is sm_120 - rebuild with "
            "-DCMAKE_CUDA_ARCHITECTURES=120");
  // Not offered itself, but its older sister is.
  EXPECT_EQ(code_problem(build_of("sm_90"), {12, 2}),
            "built for sm_90; this GPU is sm_122 - rebuild with -DCMAKE_CUDA_ARCHITECTURES=121");
}

TEST(Advice, NamesTheToolkitWhereThisOneCannot) {
  EXPECT_EQ(code_problem(build_of("sm_80 sm_90 compute_90"), {7, 5}),
            "this GPU is sm_75 and the kernels need sm_80 or newer - use another GPU");
  // As kernels with lower needs would have it.
  EXPECT_EQ(code_problem(build_of("sm_80", "50"), {7, 5}),
            "built for sm_80; this GPU is sm_75 - rebuild with -DCMAKE_CUDA_ARCHITECTURES=75");
  for (const auto& [gpu, number] : std::vector<std::pair<Capability, std::string>>{
           {{5, 0}, "50"}, {{6, 1}, "61"}, {{7, 0}, "70"}, {{7, 2}, "72"}}) {
    EXPECT_EQ(code_problem(build_of("sm_80", "50"), gpu),
              "built for sm_80; this GPU is sm_" + number +
                  " - CUDA 12.9 was the last toolkit for it: rebuild with that and "
                  "-DCMAKE_CUDA_ARCHITECTURES=" +
                  number);
  }
  for (const auto& [gpu, toolkit] : std::vector<std::pair<Capability, std::string>>{
           {{2, 1}, "8.0"}, {{3, 0}, "10.2"}, {{3, 5}, "11.8"}, {{3, 7}, "11.8"}}) {
    EXPECT_EQ(code_problem(build_of("sm_80", "20"), gpu),
              "built for sm_80; this GPU is " + sm_name(gpu) + " - CUDA " + toolkit +
                  " was the last toolkit for it, too old for headlab: use a newer GPU");
  }
  EXPECT_EQ(code_problem(build_of("sm_80 sm_90", "80", "12.6", cuda_12), {10, 0}),
            "built for sm_80, sm_90; this GPU is sm_100 - needs a newer toolkit than CUDA 12.6, or "
            "PTX that its driver compiles: rebuild with -DCMAKE_CUDA_ARCHITECTURES=90");
}

TEST(Advice, SaysWhatIsMissing) {
  StartFacts facts;
  facts.runtime = 13000;
  facts.error = "an error";
  EXPECT_EQ(start_problem(Missing::driver, facts),
            "no NVIDIA driver found (libcuda.so.1 cannot be loaded) - install one, or start the "
            "container with --gpus all");
  facts.driver = 12040;
  EXPECT_EQ(start_problem(Missing::newer_driver, facts),
            "the NVIDIA driver supports CUDA 12.4 and this build needs CUDA 13.0 - install a newer "
            "driver (580 or later), or build with the toolkit of CUDA 12.4");
  EXPECT_EQ(start_problem(Missing::device, facts),
            "an NVIDIA driver is here but no GPU - see nvidia-smi, or start the container with "
            "--gpus all");
  facts.visible = "";
  EXPECT_EQ(start_problem(Missing::device, facts),
            "no GPU is visible with CUDA_VISIBLE_DEVICES=\"\" - unset it, or name a GPU that "
            "nvidia-smi -L shows");
  for (const Missing what : {Missing::driver, Missing::newer_driver, Missing::device,
                             Missing::service, Missing::matching_driver, Missing::other}) {
    const std::string line = start_problem(what, facts);
    EXPECT_NE(line.find(" - "), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST(Advice, SaysWhatFailedWhereAndWhatToDo) {
  FailedCall call;
  call.failure = Failure::fault;
  call.what = "waiting for the GPU";
  call.error = "an illegal memory access was encountered (cudaErrorIllegalAddress)";
  call.device = 1;
  call.device_name = "NVIDIA H200";
  call.last_kernel = "weigh_kernel";
  EXPECT_EQ(failure_text(call),
            "CUDA: waiting for the GPU failed on GPU 1 (NVIDIA H200): an illegal memory access was "
            "encountered (cudaErrorIllegalAddress), after weigh_kernel - a fault of headlab or of "
            "the GPU: use --backend cpu, and please report this line with the scenario");
  EXPECT_EQ(failure_text({.failure = Failure::out_of_memory,
                          .what = "creating a stream",
                          .error = "out of memory"}),
            "CUDA: creating a stream failed: out of memory - end other programs on this GPU "
            "(nvidia-smi lists them), or use --backend cpu");
  // Each kind has advice of its own.
  std::vector<std::string> lines;
  for (const Failure kind : {Failure::out_of_memory, Failure::busy, Failure::lost, Failure::ecc,
                             Failure::fault, Failure::timeout, Failure::no_code,
                             Failure::old_driver, Failure::argument, Failure::other}) {
    lines.push_back(failure_text({.failure = kind, .what = "it", .error = "so"}));
    EXPECT_EQ(lines.back().find('\n'), std::string::npos);
    EXPECT_TRUE(lines.back().starts_with("CUDA: it failed: so - ")) << lines.back();
    EXPECT_NE(lines.back().find("--backend cpu"), std::string::npos) << lines.back();
  }
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(std::unique(lines.begin(), lines.end()), lines.end());
}

GpuStatus gpu_of(int number, const char* name, Capability capability, const char* problem) {
  GpuStatus gpu;
  gpu.number = number;
  gpu.name = name;
  gpu.capability = capability;
  gpu.multiprocessors = 132;
  gpu.problem = problem;
  return gpu;
}

TEST(CudaStatus, UsesDevicesOfOneModel) {
  const std::vector<GpuStatus> gpus = {gpu_of(0, "Old", {7, 0}, "too old"),
                                       gpu_of(1, "H200", {9, 0}, ""), gpu_of(2, "A100", {8, 0}, ""),
                                       gpu_of(3, "H200", {9, 0}, ""),
                                       gpu_of(4, "H200", {9, 0}, "busy")};
  std::vector<int> numbers;
  for (const GpuStatus& gpu : usable_together(gpus)) numbers.push_back(gpu.number);
  EXPECT_EQ(numbers, (std::vector<int>{1, 3}));
  EXPECT_EQ(no_usable_gpu(gpus), "");

  // Half a device of the same name is another model.
  std::vector<GpuStatus> sliced = {gpus[1], gpus[3]};
  sliced[1].multiprocessors = 66;
  EXPECT_EQ(usable_together(sliced).size(), 1u);

  EXPECT_TRUE(usable_together({gpus[0], gpus[4]}).empty());
  EXPECT_EQ(no_usable_gpu({gpus[0], gpus[4]}), "GPU 0 (Old): too old; GPU 4 (H200): busy");
}

TEST(CudaStatus, SaysWhatToDoNext) {
  Status here;
  EXPECT_EQ(next_step(here), "nothing to do: without a GPU the cpu backend is the one to use");
  here.driver = "580.95.05";
  EXPECT_EQ(next_step(here),
            "to use the GPU, install the CUDA toolkit, then cmake --preset cuda && cmake --build "
            "--preset cuda");
  here.compiler = "/usr/local/cuda/bin/nvcc";
  EXPECT_EQ(next_step(here), "to use the GPU: cmake --preset cuda && cmake --build --preset cuda");
  here.built = true;
  EXPECT_EQ(next_step(here), "nothing to do: headlab run uses the GPU");
  here.problem = "no GPU - see nvidia-smi";
  EXPECT_EQ(next_step(here),
            "no GPU - see nvidia-smi; until then headlab run uses the cpu backend");
}

TEST(CudaStatus, ReadsTheDriversVersion) {
  EXPECT_EQ(
      driver_release("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n"
                     "GCC version:  gcc version 12.2.0 (Debian)\n"),
      "535.104.05");
  EXPECT_EQ(driver_release("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  "
                           "Release Build  (builder)\n"),
            "580.95.05");
  EXPECT_EQ(driver_release("GCC version:  gcc version 12.2.0 (Debian)\n"), "");
  EXPECT_EQ(driver_release(""), "");
}

TEST(CudaStatus, LooksWithoutFailing) {
  const Status here = status();
  EXPECT_EQ(here.next, next_step(here));
  EXPECT_EQ(here.built, !here.toolkit.empty());
  EXPECT_EQ(here.built, !here.code.empty());
  EXPECT_TRUE(!here.built || !here.gpus.empty() || !here.problem.empty());
  EXPECT_NE(build_text().find("glibc"), std::string::npos);
}

}  // namespace
}  // namespace headlab::cuda
