// SPDX-License-Identifier: Apache-2.0
/// \file Host meaning of kernels/cuda/device.h, and `emulate`, which runs a kernel with it in
/// tests: every CUDA thread is a fiber, and thread blocks run one after another.
///
/// Finds shared memory or copies that are read too early (both are NaN until written), a missing
/// barrier (the results of the two thread orders differ), a barrier or a warp operation that not
/// every thread reaches, and under AddressSanitizer any access beyond an array. Does not find races
/// within a warp between two of its operations that both orders hide, races between thread blocks,
/// errors of memory ordering, and the rounding of other tensor cores than an A100's.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace headlab::emulated_cuda {

/// Maximum shared memory of a thread block, as on compute capability 9.0 [bytes].
inline constexpr std::uint64_t max_shared_bytes = 227 * 1024;

struct Grid {
  unsigned blocks_x = 1;
  unsigned blocks_y = 1;
  unsigned threads = 32;
  std::uint64_t shared_bytes = 0;
};

/// Runs `kernel` once for every thread of the grid, and returns when all have ended. Rethrows the
/// exception of a thread after the others have been unwound. Throws std::logic_error for a grid
/// that a device would refuse, for threads that are not a multiple of 32, and for threads that wait
/// in vain. Several host threads may call it concurrently.
void emulate(const Grid& grid, const std::function<void()>& kernel);

/// Order in which the threads of a block run, and the blocks of a grid. For all host threads, from
/// the next `emulate`; ascending by default.
enum class Order { ascending, descending };
void set_thread_order(Order order);
void set_block_order(Order order);

namespace detail {

/// Indices of the running CUDA thread.
struct Place {
  unsigned thread = 0, threads = 0;
  unsigned block_x = 0, block_y = 0;
  unsigned char* shared = nullptr;
};
inline thread_local constinit Place place;

void shuffle_xor(const void* value, void* result, std::size_t bytes, int mask);
void wait_copies(std::uint64_t pending);
void load_transposed(std::uint32_t* out, int count, const std::uint32_t* row);
void multiply_add_f16(float* d, const std::uint32_t* a, const std::uint32_t* b, int k);
void multiply_add_tf32(float* d, const std::uint32_t* a, const std::uint32_t* b);

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

/// Exactly the bytes of the launch, all 0xff (NaN) when a block starts.
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
inline float sqrt_unit(float x) {
  return std::sqrt(x);
}
inline float abs_unit(float x) {
  return std::fabs(x);
}
inline float max_unit(float a, float b) {
  return a < b || b != b ? b : a;
}

/// Copies 16 bytes when the thread waits for them and not before; without a wait never. Throws
/// std::logic_error unless both ends are aligned to 16 bytes and `shared` is in the block's shared
/// memory.
void copy_async(float* shared, const float* global);
void commit_copies();
template <int pending>
void wait_copies() {
  static_assert(pending >= 0);
  detail::wait_copies(pending);
}

/// Two float16 numbers in 32 bits.
inline std::uint32_t pack_halves(float low, float high) {
  const auto bits = [](float x) {
    return std::uint32_t{std::bit_cast<std::uint16_t>(static_cast<_Float16>(x))};
  };
  return bits(low) | bits(high) << 16;
}
inline float low_half(std::uint32_t packed) {
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(packed)));
}
inline float high_half(std::uint32_t packed) {
  return low_half(packed >> 16);
}

/// Throws std::logic_error unless the rows are aligned to 16 bytes and in the block's shared
/// memory.
template <int Count>
void load_transposed(std::uint32_t (&out)[Count], const std::uint32_t* row) {
  detail::load_transposed(out, Count, row);
}

/// d + a0 b0 + a1 b1 ..., rounded as on an A100: eight products at a time, or four of TF32, with
/// one bit beyond the largest term.
inline void multiply_add_f16(float (&d)[4], const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[2]) {
  detail::multiply_add_f16(d, a, b, 16);
}
inline void multiply_add_f16(float (&d)[4], const std::uint32_t (&a)[2],
                             const std::uint32_t (&b)[1]) {
  detail::multiply_add_f16(d, a, b, 8);
}
inline void multiply_add_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                              const std::uint32_t (&b)[2]) {
  detail::multiply_add_tf32(d, a, b);
}

inline void add_atomically(unsigned long long* sum, unsigned long long amount) {
  std::atomic_ref<unsigned long long>(*sum).fetch_add(amount, std::memory_order_relaxed);
}
inline void add_atomically(std::uint32_t* sum, std::uint32_t amount) {
  std::atomic_ref<std::uint32_t>(*sum).fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace headlab::emulated_cuda
