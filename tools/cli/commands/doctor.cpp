// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/run/memory.h"
#include "kernels/backends.h"
#include "kernels/cuda/status.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/self_test.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/text_width.h"

namespace headlab::tools {
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

struct DoctorArguments {
  void list(Options&) {}
};

ExitCode doctor(const DoctorArguments&) {
  const Provenance program = provenance();
  std::cout << "headlab " << program.version << " (git " << program.git << ", "
            << program.build_type << " build, " << program.compiler << ")\n"
            << "processor: " << make_backend("cpu")->device() << ", " << thread_count(0)
            << " threads\n"
            << "memory: " << format_bytes(available_bytes()) << " available\n"
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
