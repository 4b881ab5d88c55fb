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
#elif defined(HEADLAB_EMULATE_CUDA)
#include "kernels/cuda/emulator/emulator.h"
#define HEADLAB_KERNEL inline
#define HEADLAB_DEVICE inline
#define HEADLAB_LARGE_DEVICE inline
#define HEADLAB_LAUNCH_BOUNDS(threads, blocks)
#define HEADLAB_UNROLL
#define HEADLAB_NO_UNROLL
#endif

#if defined(__CUDACC__) || defined(HEADLAB_EMULATE_CUDA)
namespace headlab::HEADLAB_CUDA_NAMESPACE {

inline constexpr unsigned warp_threads = 32;

/// Four floats, loaded and stored together.
struct alignas(16) Four {
  float v[4];
};

#if defined(__CUDACC__)

/// Index of this thread in its block, of the block in the grid, and the threads of a block.
HEADLAB_DEVICE unsigned thread_index() {
  return threadIdx.x;
}
HEADLAB_DEVICE unsigned block_threads() {
  return blockDim.x;
}
HEADLAB_DEVICE unsigned block_index_x() {
  return blockIdx.x;
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

/// d += a b on the tensor cores for a [16][8] and b [8][8] in TF32 (the first 19 bits of a float
/// are read), d [16][8] in float32, spread over a warp as PTX says for mma.m16n8k8: with g =
/// lane / 4 and c = lane % 4, a = (g, c) (g + 8, c) (g, c + 4) (g + 8, c + 4), b = (c, g) (c + 4,
/// g), d = (g, 2 c) (g, 2 c + 1) (g + 8, 2 c) (g + 8, 2 c + 1). Every lane of a warp calls it.
HEADLAB_DEVICE void multiply_add_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
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
