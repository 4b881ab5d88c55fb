// SPDX-License-Identifier: Apache-2.0
/// \file Computes blocks of replicates of one plan on one device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/batch.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/options.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/stream_pool.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Computes a block in segments, of which the statistics stay on the device until their moments are
/// taken, and a segment in batches. Throws OutOfMemory where memory does not suffice; `note`
/// receives one line where it suffices for smaller batches only. A segment that runs out of memory
/// is tried again once, in batches of half the size.
class CudaWorker : public Worker {
 public:
  CudaWorker(const Plan& plan, int device, const Options& options, const Note& note,
             std::shared_ptr<StreamPool> streams);
  ~CudaWorker() override { streams_->give_back(device_, std::move(stream_)); }
  CudaWorker(const CudaWorker&) = delete;
  CudaWorker& operator=(const CudaWorker&) = delete;

  void run(const Block& block, std::span<Moments> out) override;

  // Steps of a segment, for measurements.

  Stream& stream() { return *stream_; }
  Batch& batch() { return batch_; }
  /// Sets the counters of the windows of `nodes` nodes to zero.
  void clear_windows(std::uint64_t nodes);
  /// Counters of a batch that begins at replicate `done` of a segment of nodes of `node`
  /// replicates.
  WindowCounters windows(std::uint64_t done, std::uint64_t node) const;
  /// Statistics of the batch computed last, of `count` replicates from replicate `counters.first`
  /// of the segment on.
  void take_statistics(std::int64_t count, const WindowCounters& counters);
  /// Moments of the leaves of the first `count` replicates of the segment; returns their arguments.
  MomentArguments take_leaves(std::uint64_t count);

 private:
  std::uint64_t bytes(std::int64_t replicates) const;
  void allocate(std::int64_t replicates);
  void place(std::int64_t replicates);
  bool halve(const std::string& why);
  void run_segment(std::uint64_t first, std::uint64_t count, std::uint64_t node,
                   std::vector<Moments>& out);
  void copy_nodes(std::uint64_t count, std::uint64_t node, double* numbers);

  const Plan& plan_;
  int device_;
  Note note_;
  std::shared_ptr<StreamPool> streams_;
  std::unique_ptr<Stream> stream_;
  MomentLayout layout_;
  std::atomic<std::uint64_t>* fallback_queries_;
  LaunchPlan launch_;
  Constants constants_;
  int segment_replicates_;                           ///< a power of two
  double *statistics_ = nullptr, *nodes_ = nullptr;  ///< of a segment, as windows_
  unsigned long long* windows_ = nullptr;
  Batch batch_;
};

/// The design points of a replicate as a device draws them, x [n][d], for tests of the draws.
std::vector<float> draw_design(const Plan& plan, std::uint64_t replicate, const Options& options);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
