// SPDX-License-Identifier: Apache-2.0
/// \file Vocabulary of the kernels: the few names of CUDA that they use, each with two meanings.
/// Under nvcc they are the instructions; with HEADLAB_EMULATE_CUDA they run on the host
/// (kernels/cuda/emulator/emulator.h), so that the tests execute every kernel without a GPU.
#pragma once

#include <cstdint>

/// Namespace of everything that launches or is launched; the emulated twin has its own.
#if defined(HEADLAB_EMULATE_CUDA)
#define HEADLAB_CUDA_NAMESPACE emulated_cuda
#else
#define HEADLAB_CUDA_NAMESPACE cuda
#endif

#if defined(__CUDACC__)
#define HEADLAB_KERNEL __global__
#define HEADLAB_DEVICE __device__ __forceinline__
/// Of many instructions and called from several places.
#define HEADLAB_LARGE_DEVICE __device__ __noinline__
/// Maximum threads of a block, and minimum blocks that fit on a multiprocessor together.
#define HEADLAB_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define HEADLAB_UNROLL _Pragma("unroll")
#define HEADLAB_NO_UNROLL _Pragma("unroll 1")
#define HEADLAB_UNROLL_BY_4 _Pragma("unroll 4")
#elif defined(HEADLAB_EMULATE_CUDA)
#include "kernels/cuda/emulator/emulator.h"
#define HEADLAB_KERNEL inline
#define HEADLAB_DEVICE inline
#define HEADLAB_LARGE_DEVICE inline
#define HEADLAB_LAUNCH_BOUNDS(threads, blocks)
#define HEADLAB_UNROLL
#define HEADLAB_NO_UNROLL
#define HEADLAB_UNROLL_BY_4
#endif

namespace headlab {
/// Four words, loaded together.
struct alignas(16) FourWords {
  std::uint32_t v[4];
};
}  // namespace headlab

#if defined(__CUDACC__) || defined(HEADLAB_EMULATE_CUDA)
namespace headlab::HEADLAB_CUDA_NAMESPACE {

inline constexpr unsigned warp_threads = 32;

/// Four floats, loaded and stored together.
struct alignas(16) Four {
  float v[4];
};

#if defined(HEADLAB_EMULATE_CUDA)
inline unsigned thread_index_again() {
  return thread_index();
}
inline int again(int number) {
  return number;
}
inline FourWords read_constants(const FourWords* from) {
  return *from;
}
#endif

#if defined(__CUDACC__)

/// Index of this thread in its block, of the block in the grid, and the threads of a block.
HEADLAB_DEVICE unsigned thread_index() {
  return threadIdx.x;
}
/// The same, read anew, so that what follows from it need not stay in registers.
HEADLAB_DEVICE unsigned thread_index_again() {
  unsigned index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}
/// The same number, which the compiler takes for another at each call: what follows from it need
/// not stay in registers.
HEADLAB_DEVICE int again(int number) {
  int same;
  asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(number));
  return same;
}
HEADLAB_DEVICE unsigned block_threads() {
  return blockDim.x;
}
HEADLAB_DEVICE unsigned block_index_x() {
  // Read at every call, so that what follows from it need not stay in registers.
  unsigned index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}
HEADLAB_DEVICE unsigned block_index_y() {
  return blockIdx.y;
}

/// The shared memory the launch asked for, aligned to 16 bytes. Not initialised.
HEADLAB_DEVICE unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char headlab_shared_memory[];
  return headlab_shared_memory;
}

/// Waits for every thread of the block, whose writes are then visible to all.
HEADLAB_DEVICE void synchronise_block() {
  __syncthreads();
}

/// The value of the lane whose number differs in the bits of `mask`; every lane of a warp calls it.
template <class T>
HEADLAB_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

/// 2^t by the exponential unit (relative error 2^-22.5 in the CUDA manual; results below 2^-126 are
/// zero).
HEADLAB_DEVICE float exp2_unit(float t) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
  return y;
}

/// The square root with a relative error of some 2^-23.
HEADLAB_DEVICE float sqrt_unit(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// |x|, which the instruction that takes it computes, and the larger of two numbers, NaN if either
/// is.
HEADLAB_DEVICE float abs_unit(float x) {
  float y;
  asm("abs.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
HEADLAB_DEVICE float max_unit(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

/// Reads what no kernel writes, through the path for read-only data: ordered with no write, so that
/// the L1 cache can serve it.
HEADLAB_DEVICE FourWords read_constants(const FourWords* from) {
  FourWords words;
  asm volatile("ld.global.nc.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(words.v[0]), "=r"(words.v[1]), "=r"(words.v[2]), "=r"(words.v[3])
               : "l"(from));
  return words;
}

/// Starts to copy 16 bytes, both ends aligned to 16, past the registers into shared memory.
HEADLAB_DEVICE void copy_async(float* shared, const float* global) {
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
/// Closes a group of copies begun by this thread.
HEADLAB_DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `pending` of this thread's latest groups are unfinished.
template <int pending>
HEADLAB_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// The nearest float16 numbers of two floats, infinite beyond 65504, and back.
HEADLAB_DEVICE std::uint32_t pack_halves(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
HEADLAB_DEVICE float low_half(std::uint32_t packed) {
  float x;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(x) : "r"(packed));
  return x;
}
HEADLAB_DEVICE float high_half(std::uint32_t packed) {
  float x;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(x) : "r"(packed));
  return x;
}

/// Loads Count matrices [8][8] of float16 from shared memory, transposed: with g = lane / 4 and c =
/// lane % 4 a lane has (2 c, g) (2 c + 1, g) of each, packed. Lane l gives the address of row l % 8
/// of matrix l / 8, aligned to 16 bytes. Every lane of a warp calls it.
template <int Count>
HEADLAB_DEVICE void load_transposed(std::uint32_t (&out)[Count], const std::uint32_t* row) {
  static_assert(Count == 2 || Count == 4);
  const auto from = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (Count == 4) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(from)
                 : "memory");
  }
}

/// d += a b on the tensor cores for a [16][K] and b [K][8] in float16, d [16][8] in float32, spread
/// over a warp as PTX says for mma.m16n8k8 and m16n8k16: with g = lane / 4 and c = lane % 4, a =
/// (g, 2 c) (g + 8, 2 c), then the same at 2 c + 8, and b = (2 c, g), then (2 c + 8, g), where each
/// stands for itself and the next coordinate; d = (g, 2 c) (g, 2 c + 1) (g + 8, 2 c) (g + 8, 2 c +
/// 1). Every lane of a warp calls it.
HEADLAB_DEVICE void multiply_add_f16(float (&d)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
HEADLAB_DEVICE void multiply_add_f16(float (&d)[4], const std::uint32_t (&a)[2],
                                     const std::uint32_t (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

/// The same for a [16][8] and b [8][8] in TF32, floats of which the last 13 bits are not read: a =
/// (g, c) (g + 8, c) (g, c + 4) (g + 8, c + 4), b = (c, g) (c + 4, g).
HEADLAB_DEVICE void multiply_add_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                      const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// *sum += amount, atomically. For integers only: sums of floats would depend on the order.
HEADLAB_DEVICE void add_atomically(unsigned long long* sum, unsigned long long amount) {
  atomicAdd(sum, amount);
}
HEADLAB_DEVICE void add_atomically(std::uint32_t* sum, std::uint32_t amount) {
  atomicAdd(sum, amount);
}

#endif

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
