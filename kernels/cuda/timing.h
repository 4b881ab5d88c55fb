// SPDX-License-Identifier: Apache-2.0
/// \file Times of the steps of a batch on a device.
#pragma once

#include <cstdint>

#include "kernels/cuda/options.h"
#include "kernels/plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Median times of the steps of one warm batch on the device itself [s].
struct KernelTimes {
  std::int64_t replicates = 0;  ///< of the batch
  double weights = 0;           ///< kernel weights of the batch: replicates x n x H x Q
  double draw = 0;
  double project = 0;
  double weigh = 0;     ///< the fused kernel, with its second pass where it has one
  double collect = 0;   ///< the sums of its panels
  double fallback = 0;  ///< the list of unsafe rows, the rows on it, and counts of windows
  double moments = 0;   ///< statistics and leaves
};

/// Measures each step `repeats` times.
KernelTimes time_kernels(const Plan& plan, int device, const Options& options, int repeats);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
