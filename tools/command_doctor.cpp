// SPDX-License-Identifier: Apache-2.0
#include "tools/command_doctor.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "engine/error.h"
#include "engine/memory.h"
#include "engine/provenance.h"
#include "kernels/backend.h"
#include "tools/figure_text.h"
#include "tools/self_test.h"

namespace headlab::tools {
namespace {

void print_backend(const std::string& name) {
  std::cout << "  " << left(name, 12);
  try {
    const auto backend = make_backend(name);
    std::cout << "here, SIMD " << backend->simd() << ", on " << backend->device() << "\n";
  } catch (const std::invalid_argument& error) {
    const std::string problem = error.what();
    std::cout << "not here: " << problem.substr(problem.find(": ") + 2) << "\n";
  }
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
    std::cout << "  " << left(name, 12) << (check.passed ? "pass  " : "FAIL  ")
              << left(check.name, 32) << check.detail << "\n";
  }
  return std::all_of(checks.begin(), checks.end(),
                     [](const SelfTestCheck& check) { return check.passed; });
}

}  // namespace

int command_doctor() {
  const Provenance program = provenance();
  std::cout << "headlab " << program.version << " (git " << program.git << ", "
            << program.build_type << " build, " << program.compiler << ")\n"
            << "processor: " << make_backend("cpu")->device() << ", "
            << std::max(1u, std::thread::hardware_concurrency()) << " threads\n"
            << "memory: " << format_bytes(available_bytes()) << " available\n"
            << "\nbackends\n";
  std::vector<std::string> names = backend_names();
  const std::vector<std::string> tested = names;
  if (std::find(names.begin(), names.end(), "cuda") == names.end()) names.emplace_back("cuda");
  for (const std::string& name : names) print_backend(name);

  std::cout << "\nself-test against closed forms\n";
  bool passed = true;
  for (const std::string& name : tested) passed = test_backend(name) && passed;
  std::cout << (passed ? "\nall is well\n" : "\nsomething is wrong: please report this output\n");
  if (!std::cout.flush()) throw CouldNotFinish("standard output: cannot be written");
  return passed ? 0 : 1;
}

}  // namespace headlab::tools
