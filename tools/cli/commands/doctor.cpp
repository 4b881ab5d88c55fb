// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>

#include "engine/run/memory.h"
#include "engine/run/run.h"
#include "engine/scenario/world.h"
#include "kernels/backends.h"
#include "kernels/counted.h"
#include "kernels/cuda/status/status.h"
#include "kernels/host.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"

namespace headlab::tools {
namespace {

constexpr double point_count = 50;

/// Heads on coordinates of their own and noise alone, of which closed forms are known.
std::string self_test_study() {
  return World{.n = "50",
               .design = R"({ law = "normal", dim = 2 })",
               .noise = R"({ law = "normal", sd = 1.0 })",
               .heads = "count = 2\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
               .kernel = R"({ law = "gaussian", bandwidth = 0.5 })",
               .points = "[[0.0, 0.0]]",
               .run = "seed = 1\nreplicates = 4096"}
      .text();
}

QueryEstimates estimates_of(const std::vector<std::string>& sets, const std::string& backend) {
  const RunResult result =
      run(parse_scenario(self_test_study(), "self-test", sets), {.backend = backend});
  return result.conditions.at(0).estimates.queries.at(0);
}

}  // namespace

SelfTestCheck compare_estimate(const std::string& name, const Estimate& figure, double expected) {
  const double z = (figure.value - expected) / figure.mcse;
  return {name, std::abs(z) <= 4,
          figure_text(figure) + formatted(", theory %.6g, z = %.2f", expected, z)};
}

SelfTestCheck compare_exact(const std::string& name, double value, double expected,
                            double tolerance) {
  return {name, std::abs(value - expected) <= tolerance,
          formatted("off by %.1e, rounding allows %.1e", std::abs(value - expected), tolerance)};
}

namespace {

/// Says whether a backend is here; true when it is.
bool print_backend(const std::string& name) {
  std::cout << "  " << left(name, 12);
  try {
    const auto backend = make_backend(name);
    std::cout << "here, SIMD " << backend->simd() << ", on " << backend->device() << "\n";
    return true;
  } catch (const std::invalid_argument& error) {
    const std::string problem = error.what();
    std::cout << wrapped("not here: " + problem.substr(problem.find(": ") + 2),
                         std::max<std::size_t>(output_width(), 14) - 14, 14)
              << "\n";
  } catch (const std::exception& error) {
    std::cout << "here, but fails: " << error.what() << "\n";
    return true;  // to be tested, so that the failure counts
  }
  return false;
}

void print_cuda(const cuda::Status& status) {
  auto line = [](const std::string& name, const std::string& text) {
    std::cout << wrapped("  " + left(name, 12) + text, output_width(), 14) << "\n";
  };
  std::cout << "\nCUDA\n";
  if (status.built) {
    line("this build", "built with CUDA " + status.toolkit + " for " + status.code);
    line("runtime", "CUDA " + status.runtime);
  } else {
    line("this build", "has no CUDA backend");
    line("toolkit", status.compiler.empty() ? "no nvcc found" : status.compiler);
  }
  line("driver", status.driver.empty() ? "no NVIDIA driver found" : status.driver);
  for (const cuda::GpuStatus& gpu : status.gpus) {
    line("GPU " + std::to_string(gpu.number),
         gpu.name + ", " + cuda::sm_name(gpu.capability) + ", " + format_bytes(gpu.memory) + ", " +
             std::to_string(gpu.multiprocessors) + " multiprocessors: " +
             (gpu.problem.empty() ? "usable" : "not usable, " + gpu.problem));
  }
  line("next", status.next);
}

/// Runs a tiny study through a backend:
///   noise alone, X ~ N(0, I), orthogonal heads, x = 0: C = s2/n exactly (theory, section 6);
///   m = 1: no bias, because the weights sum to 1;
///   aligned heads: C = V.
std::vector<SelfTestCheck> self_test(const std::string& backend) {
  // Sums over the points of a training set in float32.
  const double rounding = point_count * static_cast<double>(std::numeric_limits<float>::epsilon());
  const QueryEstimates noise = estimates_of({}, backend);
  const QueryEstimates constant = estimates_of(
      {"data.regression={ law = \"cosines\", amplitude = [1.0], frequency = [[0.0, 0.0]], "
       "phase = [0.0] }",
       "run.replicates=64"},
      backend);
  const QueryEstimates aligned =
      estimates_of({"heads.subspaces={ law = \"aligned\" }", "run.replicates=64"}, backend);
  const double variance = aligned.head_covariance.at(0).value;
  return {compare_estimate("covariance of orthogonal heads", noise.head_covariance.at(1),
                           1 / point_count),
          compare_exact("weights sum to 1", 1 + constant.head_bias.at(0).value, 1, rounding),
          compare_exact("aligned heads agree", aligned.head_covariance.at(1).value / variance, 1,
                        rounding)};
}

/// Tests one backend; true when every check passed.
bool test_backend(const std::string& name) {
  std::vector<SelfTestCheck> checks;
  try {
    checks = self_test(name);
  } catch (const std::exception& error) {
    checks = {{"self-test", false, error.what()}};
  }
  for (const SelfTestCheck& check : checks) {
    std::cout << wrapped("  " + left(name, 12) + (check.passed ? "pass  " : "FAIL  ") +
                             left(check.name, 32) + check.detail,
                         output_width(), 20)
              << "\n";
  }
  return std::all_of(checks.begin(), checks.end(),
                     [](const SelfTestCheck& check) { return check.passed; });
}

/// Why fewer threads are used than the machine has processors.
std::string limit_text() {
  const UsableProcessors here = usable_processors_here();
  if (here.limit == "machine") return "";
  return " (" + here.limit + ", of " + std::to_string(online_processors()) + ")";
}

struct DoctorArguments {
  void list(Options&) {}
};

ExitCode doctor(const DoctorArguments&) {
  const Provenance program = provenance();
  std::cout << "headlab " << program.version << " (git " << program.git << ", "
            << program.build_type << " build, " << program.compiler << ")\n"
            << "processor: " << make_backend("cpu")->device() << ", "
            << counted(static_cast<std::uint64_t>(thread_count(0)), "thread") << limit_text()
            << "\n"
            << "memory: " << available_text() << "\n"
            << "\nbackends\n";
  std::vector<std::string> names = backend_names();
  if (std::find(names.begin(), names.end(), "cuda") == names.end()) names.emplace_back("cuda");
  std::vector<std::string> tested;
  for (const std::string& name : names) {
    if (print_backend(name)) tested.push_back(name);
  }
  print_cuda(cuda::status());

  std::cout << "\nself-test against closed forms\n";
  bool passed = true;
  for (const std::string& name : tested) passed = test_backend(name) && passed;
  std::cout << (passed ? "\nall is well\n" : "\nsomething is wrong: please report this output\n");
  finish_standard_output();
  return passed ? ExitCode::done : ExitCode::failed;
}

}  // namespace

Command doctor_command() {
  return make_command("doctor", "Show what this build and machine are, and test them", doctor);
}

}  // namespace headlab::tools
