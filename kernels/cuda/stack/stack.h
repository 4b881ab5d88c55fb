// SPDX-License-Identifier: Apache-2.0
/// \file Stacks of attention layers on a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/options.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/stack/arguments.h"
#include "kernels/cuda/stream_pool.h"
#include "kernels/stack/attention.h"
#include "kernels/stack/tokens.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// A constant array on the device. Throws DeviceError where memory does not suffice.
template <class T>
class Constant {
 public:
  Constant() = default;
  /// Copies the values, which must stay until the stream is synchronised.
  Constant(Stream& stream, std::span<const T> values)
      : memory_(std::max<std::size_t>(1, values.size()) * sizeof(T)) {
    if (memory_.empty()) {
      throw DeviceError("cuda: out of memory for the constants of a scenario (" +
                        std::to_string(values.size() * sizeof(T)) + " bytes)");
    }
    if (!values.empty()) {
      stream.copy_to_device(memory_.as<T>(), values.data(), values.size() * sizeof(T));
    }
  }
  const T* data() const { return memory_.as<T>(); }

 private:
  Memory memory_;
};

/// What a device keeps of a layer, where the stack's spectra are asked for.
struct LayerRecord {
  CentredTokens tokens;
  std::vector<Attention> attention;  ///< of the heads in use, without entropies
};

/// Replicates that are computed together. Throws DeviceError where memory does not suffice; `note`
/// receives one line where it suffices for smaller batches only.
class StackBatch {
 public:
  StackBatch(const Plan& plan, int device, const Options& options, const Note& note,
             std::shared_ptr<StreamPool> streams);
  ~StackBatch() { streams_->give_back(device_, std::move(stream_)); }
  StackBatch(const StackBatch&) = delete;
  StackBatch& operator=(const StackBatch&) = delete;

  std::int64_t replicates() const { return replicates_; }
  /// Computes `count` replicates from `first` on.
  void compute(std::uint64_t first, std::int64_t count);
  /// Metrics of row l of replicate i of those computed last, spectra included.
  std::vector<LayerMetrics> metrics(std::int64_t i) const;
  /// Row l, where the stack's spectra are asked for.
  LayerRecord record(std::int64_t i, int l) const;

 private:
  bool allocate(std::int64_t replicates);

  const Plan& plan_;
  int device_;
  std::shared_ptr<StreamPool> streams_;
  std::unique_ptr<Stream> stream_;
  StackArguments a_;
  std::vector<Constant<double>> numbers_;
  Constant<float> design_table_;
  Memory points_, room_, of_metrics_, of_records_;
  std::int64_t replicates_ = 0;
  std::vector<LayerMetrics> metrics_;
  std::vector<double> records_;
};

/// Creates the worker of a plan that has a stack.
std::unique_ptr<Worker> make_cuda_stack_worker(const Plan& plan, int device, const Options& options,
                                               const Note& note,
                                               std::shared_ptr<StreamPool> streams);

/// Its memory on the host [bytes].
std::uint64_t cuda_stack_worker_bytes(const Plan& plan);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
