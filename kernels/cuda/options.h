// SPDX-License-Identifier: Apache-2.0
/// \file Options of the CUDA backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/cuda/launch_plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Settings of tests and benchmarks; the results have the same bits for any batch.
struct Options {
  std::int64_t batch_replicates = 0;  ///< 0: as many as fill a device
  /// Maximum statistics kept on the device before their moments are taken, unless one leaf has
  /// more.
  std::uint64_t statistics_bytes = 64 << 20;
  LaunchLimits limits;
  /// Queries and projections for the tensor cores lack their lower parts: results are wrong from
  /// the 12th bit on. A fault for tests of the comparison.
  bool no_lower_parts = false;
  /// Thread blocks that a kernel of a fit is divided into, about, where there is work for as many:
  /// some eight per multiprocessor of a large device. Not timed on a GPU yet.
  std::int64_t fit_blocks = 1024;
  /// Counts the queries of replicates that took the fallback, whose results would not show it.
  std::atomic<std::uint64_t>* fallback_queries = nullptr;
};

/// Receives one line for the user.
using Note = std::function<void(const std::string&)>;

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
