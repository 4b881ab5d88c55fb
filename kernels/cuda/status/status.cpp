// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/status/status.h"

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "kernels/host.h"

namespace headlab::cuda {
namespace {

/// The driver as the system shows it, without the CUDA runtime. Containers may hide the file and
/// have the library, or the other way round.
std::string find_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string release = driver_release(text);
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return release.empty() ? "" : release + " without its library libcuda.so.1";
  }
  std::string driver = release.empty() ? "libcuda.so.1" : release;
  int version = 0;
  if (void* symbol = ::dlsym(library, "cuDriverGetVersion"); symbol != nullptr) {
    using GetVersion = int (*)(int*);
    if (reinterpret_cast<GetVersion>(symbol)(&version) == 0) {
      driver += ", CUDA " + cuda_version(version);
    }
  }
  ::dlclose(library);
  return driver;
}

/// nvcc where a build would find it: CUDACXX, PATH, CUDA_PATH, CUDA_HOME, /usr/local/cuda.
std::string find_compiler() {
  std::vector<std::filesystem::path> places;
  if (const char* named = environment_variable("CUDACXX")) places.emplace_back(named);
  if (const char* path = environment_variable("PATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      places.push_back(std::filesystem::path(folder) / "nvcc");
    }
  }
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    if (const char* root = environment_variable(variable)) {
      places.push_back(std::filesystem::path(root) / "bin/nvcc");
    }
  }
  places.emplace_back("/usr/local/cuda/bin/nvcc");
  for (const std::filesystem::path& place : places) {
    std::error_code error;
    if (place.is_absolute() && std::filesystem::is_regular_file(place, error)) {
      return place.string();
    }
  }
  return "";
}

}  // namespace

Status status() {
  Status here;
  here.driver = find_driver();
  here.compiler = find_compiler();
#if defined(HEADLAB_HAVE_CUDA)
  const BuildFacts& build = build_facts();
  here.built = true;
  here.toolkit = build.toolkit;
  here.code = code_names(build);
  here.runtime = cuda_version(survey().runtime);
  here.problem = survey().problem;
  here.gpus = survey().gpus;
#endif
  here.next = next_step(here);
  return here;
}

std::string next_step(const Status& status) {
  if (status.built) {
    if (status.problem.empty()) return "nothing to do: headlab run uses the GPU";
    return status.problem + "; until then headlab run uses the cpu backend";
  }
  if (status.driver.empty())
    return "nothing to do: without a GPU the cpu backend is the one to use";
  const std::string build = "cmake --preset cuda && cmake --build --preset cuda";
  if (status.compiler.empty()) return "to use the GPU, install the CUDA toolkit, then " + build;
  return "to use the GPU: " + build;
}

std::string build_text() {
  std::string text = "built by GCC " __VERSION__;
#if defined(__GLIBC__)
  text += ", needs glibc " + std::to_string(__GLIBC__) + "." + std::to_string(__GLIBC_MINOR__) +
          " at most";
#endif
#if defined(HEADLAB_HAVE_CUDA)
  text += ", CUDA " + build_facts().toolkit + " for " + code_names(build_facts());
#else
  text += ", without CUDA";
#endif
  return text;
}

std::string driver_release(const std::string& text) {
  std::smatch found;
  const std::regex release(R"(NVRM version:[^\n]*?\s(\d+\.\d+(\.\d+)?)\s)");
  return std::regex_search(text, found, release) ? found[1].str() : "";
}

}  // namespace headlab::cuda
