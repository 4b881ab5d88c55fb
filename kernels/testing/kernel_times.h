// SPDX-License-Identifier: Apache-2.0
/// \file Times of the steps of a batch on a device, for tests and benchmarks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/worker.h"
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

/// Median time of a step [s]. The step is queued many times between two marks, so that the device's
/// time is measured and not the host's.
template <class Step>
double median_seconds(Stream& stream, int repeats, const Step& step) {
  constexpr int queued = 20;
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const Mark before(stream);
    for (int i = 0; i < queued; ++i) step();
    const Mark after(stream);
    seconds.push_back(after.seconds_since(before) / queued);
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// Measures each step `repeats` times.
inline KernelTimes time_kernels(const Plan& plan, int device, const Options& options, int repeats) {
  CudaWorker worker(
      plan, device, options, [](const std::string&) {}, std::make_shared<StreamPool>());
  Batch& batch = worker.batch();
  Stream& stream = worker.stream();
  const std::int64_t count = batch.replicates();
  const auto replicates = static_cast<std::uint64_t>(count);
  const WindowCounters windows = worker.windows(0, replicates);
  worker.clear_windows(1);
  auto moments = [&] {
    worker.take_statistics(count, windows);
    worker.take_leaves(replicates);
  };
  batch.compute(0, count, windows);
  moments();
  stream.synchronise();
  auto seconds = [&](const Steps& steps) {
    return median_seconds(stream, repeats, [&] { batch.compute(0, count, windows, steps); });
  };
  const double collect = seconds({.collect = true});
  // Rows stay listed only until they are repaired, so that both steps are repeated together.
  const double both = seconds({.collect = true, .fallback = true});
  return {.replicates = count,
          .weights =
              static_cast<double>(count) * static_cast<double>(plan.n) * plan.heads * plan.queries,
          .draw = seconds({.draw = true}),
          .project = seconds({.project = true}),
          .weigh = seconds({.weigh = true}),
          .collect = collect,
          .fallback = std::max(0.0, both - collect),
          .moments = median_seconds(stream, repeats, moments)};
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
