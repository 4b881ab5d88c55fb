// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream_pool.h"

#include <algorithm>
#include <exception>

namespace headlab::HEADLAB_CUDA_NAMESPACE {

StreamPool::~StreamPool() {
  for (auto& [device, stream] : idle_) {
    try {
      use_device(device);
    } catch (const std::exception&) {
      // A lost device has nothing to clean up.
    }
    stream.reset();
  }
}

std::unique_ptr<Stream> StreamPool::take(int device) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(idle_, [&](const auto& entry) { return entry.first == device; });
  if (found == idle_.end()) return std::make_unique<Stream>();
  std::unique_ptr<Stream> stream = std::move(found->second);
  idle_.erase(found);
  return stream;
}

bool StreamPool::release_idle(int device) {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (const auto& [owner, stream] : idle_) {
    if (owner != device) continue;
    any |= stream->work.release();
    any |= stream->constants.release();
  }
  return any;
}

void StreamPool::give_back(int device, std::unique_ptr<Stream> stream) {
  if (stream == nullptr) return;
  try {
    // The memory that its work reads is another worker's next.
    use_device(device);
    stream->synchronise();
    const std::lock_guard lock(mutex_);
    idle_.emplace_back(device, std::move(stream));
  } catch (const std::exception&) {
    // A stream that failed, or that finds no room, is not for the next worker.
  }
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
