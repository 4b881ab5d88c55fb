// SPDX-License-Identifier: Apache-2.0
/// \file Messages of the CUDA backend where something is missing or fails: one line, "problem -
/// what to do". Plain functions of plain facts, so that every line is tested without a GPU.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headlab::cuda {

/// Compute capability: 9.0 is the one called sm_90.
struct Capability {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Capability&) const = default;
};

/// The code for one architecture that a build carries: machine code, or PTX that the driver
/// compiles when the program starts.
struct Code {
  Capability capability;
  bool ptx = false;
  char suffix = 0;  ///< 'a': only that GPU; 'f': only its major version
};

/// Toolkit and architectures of this build, as tools/cmake/cuda.cmake found them.
struct BuildFacts {
  std::string toolkit;              ///< "13.0"
  std::vector<Code> code;           ///< in the build
  std::vector<Capability> offered;  ///< architectures that its nvcc compiles for
  Capability least;                 ///< minimum that the kernels need
};

/// Parses the texts of the build: "13.0", "sm_80 sm_90 compute_90", "75 80 86 90", "80". Throws
/// std::invalid_argument for malformed text.
BuildFacts parse_build_facts(const std::string& toolkit, const std::string& code,
                             const std::string& offered, const std::string& least);

/// "sm_90".
std::string sm_name(Capability gpu);
/// "sm_80, sm_90, PTX of compute_90".
std::string code_names(const BuildFacts& build);
/// Name of CUDA's version number: "13.0" for 13000.
std::string cuda_version(int number);

/// True where the code runs on a GPU: machine code on its major version from its minor version up,
/// PTX on everything newer.
bool runs_on(const Code& code, Capability gpu);

/// Reason why the build has no code for a GPU, and how to get it; empty where it has.
std::string code_problem(const BuildFacts& build, Capability gpu);

/// A GPU, and the reason why it cannot be used.
struct GpuStatus {
  int number = 0;
  std::string name;
  Capability capability;
  int multiprocessors = 0;
  std::uint64_t memory = 0;         ///< [bytes]
  std::uint64_t shared_memory = 0;  ///< maximum of a thread block [bytes]
  std::string problem;              ///< empty where it can be used
};

/// Reason why none of the GPUs can be used; empty where one can.
std::string no_usable_gpu(const std::vector<GpuStatus>& gpus);

/// GPUs to be used together: those of the model of the first that can be used, so that results have
/// the same bits whichever of them computes a block.
std::vector<GpuStatus> usable_together(const std::vector<GpuStatus>& gpus);

/// Obstacles before any device is seen.
enum class Missing { driver, newer_driver, device, service, matching_driver, other };

struct StartFacts {
  int driver = 0;                      ///< CUDA version the driver supports, 0 without a driver
  int runtime = 0;                     ///< CUDA version of this build
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES, where it is set
  std::string error;                   ///< message of the runtime
};

std::string start_problem(Missing what, const StartFacts& facts);

/// Kinds of failed calls, by the remedy.
enum class Failure {
  out_of_memory,
  busy,        ///< another program holds the device
  lost,        ///< the device no longer answers
  ecc,         ///< memory errors that could not be corrected
  fault,       ///< illegal address or instruction in a kernel
  timeout,     ///< stopped by a display's watchdog
  no_code,     ///< no code in this build for this device
  old_driver,  ///< the driver cannot compile this build's PTX
  argument,    ///< invalid launch or argument
  other
};

struct FailedCall {
  Failure failure = Failure::other;
  std::string what;         ///< "cudaMalloc of 1048576 bytes", "sum_weights"
  std::string error;        ///< "out of memory (cudaErrorMemoryAllocation)"
  int device = -1;          ///< -1 where there is none yet
  std::string device_name;  ///< "NVIDIA H200"; may be empty
  std::string last_kernel;  ///< last launch before the call, where that is not `what`; may be empty
};

/// "CUDA: WHAT failed on GPU 0 (NVIDIA H200): ERROR - what to do".
std::string failure_text(const FailedCall& call);

}  // namespace headlab::cuda
