// SPDX-License-Identifier: Apache-2.0
/// \file What of CUDA is in this build and on this machine; in every build, with CUDA or without.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/advice.h"

namespace headlab::cuda {

struct Status {
  bool built = false;    ///< this build has the backend
  std::string toolkit;   ///< "13.0" it was built with; empty without the backend
  std::string code;      ///< "sm_80, sm_90, PTX of compute_90"; empty without the backend
  std::string runtime;   ///< "13.0"; empty without the backend
  std::string driver;    ///< "580.95.05, CUDA 13.0", as far as it is known; empty without one
  std::string compiler;  ///< where an nvcc is; empty where none was found
  std::string problem;   ///< why there is no GPU to use: one line, "problem - what to do"
  std::vector<GpuStatus> gpus;
  std::string next;  ///< what to do next, one line
};

/// Looks at the build and the machine. Never throws for what is missing.
Status status();

/// What to do next, one line.
std::string next_step(const Status& status);

/// "built by GCC 12.2.0, needs glibc 2.36 at most, CUDA 13.0 for sm_80, sm_90, PTX of compute_90":
/// what programs that are carried to another machine say of themselves when they start.
std::string build_text();

/// The driver's version in the text of /proc/driver/nvidia/version; empty where there is none.
std::string driver_release(const std::string& text);

}  // namespace headlab::cuda
