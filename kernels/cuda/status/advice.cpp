// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/status/advice.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <stdexcept>

namespace headlab::cuda {
namespace {

/// "90" -> 9.0, "121" -> 12.1, "90a" -> 9.0 with a suffix where one is allowed.
Capability parse_capability(const std::string& text, char* suffix = nullptr) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  bool whole = error == std::errc() && number >= 10;
  if (whole && suffix != nullptr && stop + 1 == end && (*stop == 'a' || *stop == 'f')) {
    *suffix = *stop;
  } else {
    whole = whole && stop == end;
  }
  if (!whole) throw std::invalid_argument("no compute capability: \"" + text + "\"");
  return {number / 10, number % 10};
}

Code parse_code(const std::string& text) {
  Code code;
  code.ptx = text.starts_with("compute_");
  if (!code.ptx && !text.starts_with("sm_")) {
    throw std::invalid_argument("no code of a GPU: \"" + text + "\"");
  }
  code.capability = parse_capability(text.substr(text.find('_') + 1), &code.suffix);
  return code;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

std::string number_of(Capability gpu) {
  return std::to_string(gpu.major) + std::to_string(gpu.minor);
}

/// The last toolkit with code for a GPU that today's no longer have; empty for those they have.
/// From the release notes of CUDA 11.0, 12.0 and 13.0.
std::string last_toolkit(Capability gpu) {
  if (gpu < Capability{3, 0}) return "CUDA 8.0";
  if (gpu < Capability{3, 5}) return "CUDA 10.2";
  if (gpu < Capability{5, 0}) return "CUDA 11.8";
  if (gpu < Capability{7, 5}) return "CUDA 12.9";
  return "";
}

/// The architecture to compile for so that a GPU can run it, of those offered.
std::optional<Capability> best_offered(const BuildFacts& build, Capability gpu) {
  std::optional<Capability> best;
  for (const Capability offer : build.offered) {
    const bool runs = runs_on({.capability = offer}, gpu) && offer >= build.least;
    if (runs && (!best || offer > *best)) best = offer;
  }
  return best;
}

std::string advice(Failure failure) {
  switch (failure) {
    case Failure::out_of_memory:
      return "end other programs on this GPU (nvidia-smi lists them), or use --backend cpu";
    case Failure::busy:
      return "another program has this GPU for itself, or its compute mode forbids use: see "
             "nvidia-smi, or use --backend cpu";
    case Failure::lost:
      return "the GPU no longer answers: see dmesg for \"NVRM: Xid\", restart the machine, or use "
             "--backend cpu";
    case Failure::ecc:
      return "the GPU's memory is failing: see nvidia-smi -q -d ECC, hide this GPU with "
             "CUDA_VISIBLE_DEVICES, or use --backend cpu";
    case Failure::fault:
      return "a fault of headlab or of the GPU: use --backend cpu, and please report this line "
             "with "
             "the scenario";
    case Failure::timeout:
      return "a GPU that drives a display stops long kernels: use another GPU "
             "(CUDA_VISIBLE_DEVICES), or --backend cpu";
    case Failure::no_code:
      return "headlab doctor says which architecture to build for; or use --backend cpu";
    case Failure::old_driver:
      return "install a newer NVIDIA driver, build with -DCMAKE_CUDA_ARCHITECTURES=native, or use "
             "--backend cpu";
    case Failure::argument:
      return "a fault of headlab: use --backend cpu, and please report this line with the scenario";
    case Failure::other:
      break;
  }
  return "headlab doctor shows what is here; or use --backend cpu";
}

}  // namespace

BuildFacts parse_build_facts(const std::string& toolkit, const std::string& code,
                             const std::string& offered, const std::string& least) {
  BuildFacts build;
  build.toolkit = toolkit;
  for (const std::string& word : words(code)) build.code.push_back(parse_code(word));
  for (const std::string& word : words(offered)) build.offered.push_back(parse_capability(word));
  build.least = parse_capability(least);
  return build;
}

std::string sm_name(Capability gpu) {
  return "sm_" + number_of(gpu);
}

std::string code_names(const BuildFacts& build) {
  std::string all;
  for (const Code& code : build.code) {
    if (!all.empty()) all += ", ";
    all += (code.ptx ? "PTX of compute_" : "sm_") + number_of(code.capability);
    if (code.suffix != 0) all += code.suffix;
  }
  return all;
}

std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

bool runs_on(const Code& code, Capability gpu) {
  if (code.suffix == 'a') return gpu == code.capability;
  if (gpu < code.capability) return false;
  return (code.ptx && code.suffix == 0) || gpu.major == code.capability.major;
}

std::string code_problem(const BuildFacts& build, Capability gpu) {
  if (std::any_of(build.code.begin(), build.code.end(),
                  [&](const Code& code) { return runs_on(code, gpu); })) {
    return "";
  }
  const std::string name = sm_name(gpu);
  if (gpu < build.least) {
    return "this GPU is " + name + " and the kernels need " + sm_name(build.least) + " or newer" +
           " - use another GPU";
  }
  const std::string problem = "built for " + code_names(build) + "; this GPU is " + name + " - ";
  if (const auto best = best_offered(build, gpu)) {
    return problem + "rebuild with -DCMAKE_CUDA_ARCHITECTURES=" + number_of(*best);
  }
  if (const std::string last = last_toolkit(gpu); !last.empty()) {
    const int major = std::stoi(last.substr(5));
    if (major < 12) {
      return problem + last + " was the last toolkit for it, too old for headlab: use a newer GPU";
    }
    return problem + last + " was the last toolkit for it: rebuild with that and " +
           "-DCMAKE_CUDA_ARCHITECTURES=" + number_of(gpu);
  }
  const auto newest = std::max_element(build.offered.begin(), build.offered.end());
  if (newest != build.offered.end() && *newest < gpu) {
    return problem + "needs a newer toolkit than CUDA " + build.toolkit +
           ", or PTX that its driver compiles: rebuild with -DCMAKE_CUDA_ARCHITECTURES=" +
           number_of(*newest);
  }
  return problem + "CUDA " + build.toolkit + " cannot compile for it: rebuild with another toolkit";
}

std::string no_usable_gpu(const std::vector<GpuStatus>& gpus) {
  std::string problem;
  for (const GpuStatus& gpu : gpus) {
    if (gpu.problem.empty()) return "";
    if (!problem.empty()) problem += "; ";
    problem += "GPU " + std::to_string(gpu.number) + " (" + gpu.name + "): " + gpu.problem;
  }
  return problem;
}

std::vector<GpuStatus> usable_together(const std::vector<GpuStatus>& gpus) {
  std::vector<GpuStatus> together;
  for (const GpuStatus& gpu : gpus) {
    if (!gpu.problem.empty()) continue;
    const bool same = together.empty() ||
                      (gpu.name == together[0].name && gpu.capability == together[0].capability &&
                       gpu.multiprocessors == together[0].multiprocessors);
    if (same) together.push_back(gpu);
  }
  return together;
}

std::string start_problem(Missing what, const StartFacts& facts) {
  switch (what) {
    case Missing::driver:
      return "no NVIDIA driver found (libcuda.so.1 cannot be loaded) - install one, or start the "
             "container with --gpus all";
    case Missing::newer_driver: {
      // What a driver of one major version supports runs all of that version.
      std::string advice = "install a newer driver";
      if (facts.runtime / 1000 == 12) advice += " (525 or later)";
      if (facts.runtime / 1000 == 13) advice += " (580 or later)";
      // Older toolkits than 12.4 cannot build headlab.
      if (facts.driver >= 12040) {
        advice += ", or build with the toolkit of CUDA " + cuda_version(facts.driver);
      }
      return "the NVIDIA driver supports CUDA " + cuda_version(facts.driver) +
             " and this build needs CUDA " + cuda_version(facts.runtime) + " - " + advice;
    }
    case Missing::device:
      if (facts.visible) {
        return "no GPU is visible with CUDA_VISIBLE_DEVICES=\"" + *facts.visible +
               "\" - unset it, or name a GPU that nvidia-smi -L shows";
      }
      return "an NVIDIA driver is here but no GPU - see nvidia-smi, or start the container with "
             "--gpus all";
    case Missing::service:
      return "the GPUs are not ready (" + facts.error +
             ") - start nvidia-fabricmanager, see nvidia-smi";
    case Missing::matching_driver:
      return "the NVIDIA driver's library and kernel module do not belong together (" +
             facts.error + ") - restart the machine";
    case Missing::other:
      break;
  }
  return "CUDA does not start (" + facts.error + ") - see nvidia-smi";
}

std::string failure_text(const FailedCall& call) {
  std::string text = "CUDA: " + call.what + " failed";
  if (call.device >= 0) {
    text += " on GPU " + std::to_string(call.device);
    if (!call.device_name.empty()) text += " (" + call.device_name + ")";
  }
  text += ": " + call.error;
  // A fault shows in a later call than the one that made it.
  if (!call.last_kernel.empty()) text += ", after " + call.last_kernel;
  return text + " - " + advice(call.failure);
}

}  // namespace headlab::cuda
