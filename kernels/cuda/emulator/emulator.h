// SPDX-License-Identifier: Apache-2.0
/// \file The host meaning of kernels/cuda/device.h, and `emulate`, which runs a kernel with it. For
/// tests: every CUDA thread is a fiber, blocks run one after another, nothing is fast.
///
/// What it finds: shared memory or copies that are read before they are there (both are NaN until
/// then), a missing barrier (the results of the two thread orders differ), a barrier or a warp
/// operation that not every thread reaches, and under AddressSanitizer any access beyond an array.
/// What it does not show: races within a warp between two of its operations that both orders hide,
/// races between blocks, memory ordering, and the rounding of the tensor cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace headlab::emulated_cuda {

/// Shared memory that a block may have, as on compute capability 9.0 [bytes].
inline constexpr std::uint64_t max_shared_bytes = 227 * 1024;

struct Grid {
  unsigned blocks_x = 1;
  unsigned blocks_y = 1;
  unsigned threads = 32;
  std::uint64_t shared_bytes = 0;
};

/// Runs `kernel` once for every thread of the grid, and returns when all have ended. What a thread
/// throws comes out of here, after the others have been unwound. Throws std::logic_error for a grid
/// that a device would refuse, for threads that are not a multiple of 32, and for threads that wait
/// for one that does not come. Several host threads may call it at once.
void emulate(const Grid& grid, const std::function<void()>& kernel);

/// The order in which threads of a block get their turn, and blocks of a grid. For all host
/// threads, from the next `emulate`; ascending unless a test asks.
enum class Order { ascending, descending };
void set_thread_order(Order order);
void set_block_order(Order order);

namespace detail {

/// Where the running CUDA thread is.
struct Place {
  unsigned thread = 0, threads = 0;
  unsigned block_x = 0, block_y = 0;
  unsigned char* shared = nullptr;
};
inline thread_local constinit Place place;

void shuffle_xor(const void* value, void* result, std::size_t bytes, int mask);
void wait_copies(std::uint64_t pending);

}  // namespace detail

inline unsigned thread_index() {
  return detail::place.thread;
}
inline unsigned block_threads() {
  return detail::place.threads;
}
inline unsigned block_index_x() {
  return detail::place.block_x;
}
inline unsigned block_index_y() {
  return detail::place.block_y;
}

/// Exactly the bytes of the launch, all of them 0xff (NaN) when a block begins.
inline unsigned char* shared_memory() {
  return detail::place.shared;
}

void synchronise_block();

/// As __shfl_xor_sync with all lanes; the mask is 0 to 31.
template <class T>
T shuffle_xor(T value, int mask) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  T result{};
  detail::shuffle_xor(&value, &result, sizeof(T), mask);
  return result;
}

/// std::exp2, without results below 2^-126.
float exp2_unit(float t);

/// A copy is made when its thread waits for it and not before; one that nobody waits for is never
/// made. Throws std::logic_error unless both ends are aligned to 16 bytes and `shared` is in the
/// block's shared memory.
void copy_async(float* shared, const float* global);
void commit_copies();
template <int pending>
void wait_copies() {
  static_assert(pending >= 0);
  detail::wait_copies(pending);
}

/// Of a and b the low 13 bits are cut off. Products are exact, and so is d + a0 b0 + a1 b1 ...,
/// which is then cut off to a float; tensor cores cut every term, at one or two bits beyond the
/// largest.
void multiply_add_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]);

inline void add_atomically(unsigned long long* sum, unsigned long long amount) {
  std::atomic_ref<unsigned long long>(*sum).fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace headlab::emulated_cuda
