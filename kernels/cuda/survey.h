// SPDX-License-Identifier: Apache-2.0
/// \file Survey of this machine by the CUDA runtime, made once. Only in builds with CUDA.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/advice.h"

namespace headlab::cuda {

struct Survey {
  int driver = 0;       ///< CUDA version it supports, 0 where there is none
  int runtime = 0;      ///< CUDA version of this build
  std::string problem;  ///< reason why no GPU can be used, empty where one can
  std::vector<GpuStatus> gpus;
};

/// Creates no context on any device.
const Survey& survey();

/// Toolkit and architectures of this build.
const BuildFacts& build_facts();

}  // namespace headlab::cuda
