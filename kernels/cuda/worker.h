// SPDX-License-Identifier: Apache-2.0
/// \file Computes blocks of replicates of one plan on one device.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/shape.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// What tests and benchmarks may set; the results are the same bits for any batch.
struct Options {
  std::int64_t batch_replicates = 0;  ///< 0: by the size of a batch that fills a device
  /// Statistics kept on the device before their moments are taken, at most, but for one leaf.
  std::uint64_t statistics_bytes = 64 << 20;
  ShapeChoice shape;
  /// Blocks of threads that a kernel of a fit is cut into, about, where there is work for as many:
  /// some eight for each multiprocessor of a large device. Not timed on a GPU yet.
  std::int64_t fit_blocks = 1024;
  /// Counts queries of replicates that were done again on the robust path. What reaches it by
  /// mistake comes out right, so tests have to ask.
  std::atomic<std::uint64_t>* robust_queries = nullptr;
};

/// Hears what the user should know.
using Note = std::function<void(const std::string&)>;

/// Streams that wait for their next worker: one takes longer to make, for its cuBLAS handle, than a
/// small condition of a sweep to compute.
class StreamPool {
 public:
  ~StreamPool();
  /// A stream of the device in use, `device`.
  std::unique_ptr<Stream> take(int device);
  void give_back(int device, std::unique_ptr<Stream> stream);

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, std::unique_ptr<Stream>>> idle_;
};

/// A worker on a device.
std::unique_ptr<Worker> make_worker(const Plan& plan, int device, const Options& options,
                                    const Note& note, std::shared_ptr<StreamPool> streams);

/// Median times of the steps of one warm batch on the device itself [s].
struct KernelTimes {
  std::int64_t replicates = 0;  ///< of the batch
  double weights = 0;           ///< kernel weights of the batch: replicates x n x H x Q
  double draw = 0;
  double project = 0;
  double weigh = 0;    ///< the fused kernel, with its second pass where it has one
  double moments = 0;  ///< what follows: sums, unsafe queries again, statistics, leaves
};

/// Measures each step `repeats` times.
KernelTimes time_kernels(const Plan& plan, int device, const Options& options, int repeats);

/// The design points of a replicate as a device draws them, x [n][d], for tests of the draws.
std::vector<float> draw_design(const Plan& plan, std::uint64_t replicate, const Options& options);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
