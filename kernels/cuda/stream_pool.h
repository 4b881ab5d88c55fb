// SPDX-License-Identifier: Apache-2.0
/// \file Streams and their memory, kept for the next worker.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/cuda/runtime.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Idle streams, with the memory of the workers that had them.
class StreamPool {
 public:
  ~StreamPool();
  /// A stream of `device`, which is the device in use.
  std::unique_ptr<Stream> take(int device);
  /// Waits for its work. A stream that failed is not kept.
  void give_back(int device, std::unique_ptr<Stream> stream);
  /// Frees the memory of the idle streams of `device`, which is the device in use, for those whose
  /// memory is not of a stream. True if there was any.
  bool release_idle(int device);

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, std::unique_ptr<Stream>>> idle_;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
