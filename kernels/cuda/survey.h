// SPDX-License-Identifier: Apache-2.0
/// \file What the CUDA runtime says of this machine, asked once. In builds with CUDA alone.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/advice.h"

namespace headlab::cuda {

struct Survey {
  int driver = 0;       ///< CUDA version it supports, 0 where there is none
  int runtime = 0;      ///< CUDA version of this build
  std::string problem;  ///< why no GPU can be used, empty where one can
  std::vector<GpuStatus> gpus;
};

/// Creates no context on any device.
const Survey& survey();

/// What this build was made with.
const BuildFacts& build_facts();

}  // namespace headlab::cuda
