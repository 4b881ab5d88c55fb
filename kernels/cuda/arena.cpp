// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "kernels/cuda/runtime.h"

#if defined(HEADLAB_EMULATE_CUDA)
#include <cstring>
#include <sanitizer/asan_interface.h>
#endif

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// As cudaMalloc has it.
constexpr std::uint64_t array_alignment = 256;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

#if defined(HEADLAB_EMULATE_CUDA)
// What is not in an array is not for a kernel, and a new array holds nothing.
constexpr std::uint64_t gap = array_alignment;
void close(void* data, std::uint64_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  std::memset(data, 0xff, bytes);
  ASAN_POISON_MEMORY_REGION(data, bytes);
}
void open([[maybe_unused]] void* data, [[maybe_unused]] std::uint64_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
}
#else
constexpr std::uint64_t gap = 0;
void close(void*, std::uint64_t) {}
void open(void*, std::uint64_t) {}
#endif

}  // namespace

std::uint64_t Arena::room(std::uint64_t bytes) {
  return rounded_up(bytes, array_alignment) + gap;
}

bool Arena::reserve(std::uint64_t bytes) {
  if (bytes > capacity_) {
    // The old memory first, so that both are never needed together.
    release();
    // In steps of an eighth, so that slowly growing conditions seldom allocate.
    const std::uint64_t wanted =
        rounded_up(bytes, std::max(array_alignment, std::bit_ceil(bytes) / 16));
    memory_ = Memory(wanted);
    if (memory_.empty()) return false;
    capacity_ = wanted;
  }
  reserved_ = bytes;
  taken_ = 0;
  close(memory_.as<void>(), capacity_);
  return true;
}

bool Arena::release() {
  const bool any = !memory_.empty();
  memory_ = Memory();
  capacity_ = reserved_ = taken_ = 0;
  return any;
}

void* Arena::take_bytes(std::uint64_t bytes) {
  if (room(bytes) > reserved_ - taken_) {
    throw std::logic_error("no room for an array of " + std::to_string(bytes) + " bytes");
  }
  void* const array = memory_.as<unsigned char>() + taken_;
  taken_ += room(bytes);
  open(array, bytes);
  return array;
}

void* Stream::host_buffer(std::uint64_t bytes) {
  if (bytes > host_bytes_) {
    host_ = HostMemory();
    host_bytes_ = 0;
    host_ = HostMemory(bytes);
    if (host_.empty()) {
      throw OutOfMemory("cuda: out of page-locked memory of the host (" + std::to_string(bytes) +
                        " bytes) - see ulimit -l, or use --backend cpu");
    }
    host_bytes_ = bytes;
  }
  return host_.as<void>();
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
