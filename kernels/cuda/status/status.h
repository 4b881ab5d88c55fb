// SPDX-License-Identifier: Apache-2.0
/// \file CUDA in this build and on this machine; in every build, with CUDA or without.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/status/advice.h"

namespace headlab::cuda {

struct Status {
  bool built = false;    ///< this build has the backend
  std::string toolkit;   ///< "13.0" it was built with; empty without the backend
  std::string code;      ///< "sm_80, sm_90, PTX of compute_90"; empty without the backend
  std::string runtime;   ///< "13.0"; empty without the backend
  std::string driver;    ///< "580.95.05, CUDA 13.0", as far as known; empty without one
  std::string compiler;  ///< path of nvcc; empty where none was found
  std::string problem;   ///< reason why no GPU can be used: one line, "problem - what to do"
  std::vector<GpuStatus> gpus;
  std::string next;  ///< next step for the user, one line
};

/// Survey of this machine by the CUDA runtime. Only in builds with CUDA.
struct Survey {
  int driver = 0;       ///< CUDA version it supports, 0 where there is none
  int runtime = 0;      ///< CUDA version of this build
  std::string problem;  ///< reason why no GPU can be used, empty where one can
  std::vector<GpuStatus> gpus;
};

/// Made once. Creates no context on any device.
const Survey& survey();

/// Toolkit and architectures of this build, where it has CUDA.
const BuildFacts& build_facts();

/// Inspects the build and the machine. Does not throw for missing parts.
Status status();

/// Next step for the user, one line.
std::string next_step(const Status& status);

/// Build of the program, which programs carried to another machine print when they start: "built by
/// GCC 12.2.0, needs glibc 2.36 at most, CUDA 13.0 for sm_80, sm_90, PTX of compute_90".
std::string build_text();

/// The driver's version in the text of /proc/driver/nvidia/version; empty where there is none.
std::string driver_release(const std::string& text);

}  // namespace headlab::cuda
