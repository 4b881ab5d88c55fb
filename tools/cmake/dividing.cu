// SPDX-License-Identifier: Apache-2.0
// Negative control of tools/check/slots.py: the sums of one tile after another, as in a kernel that
// weighs keys, and the same with an integer division in each tile. Both have the same row. A third
// kernel has a load that is ordered with writes.
namespace headlab {
namespace {

constexpr int tile = 128;  // and threads

__device__ float weight(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

template <bool divides>
__device__ void sum_tiles(float* sums, const float* keys, int tiles, int divisor) {
  __shared__ float staged[tile];
  const int thread = static_cast<int>(threadIdx.x);
  const float query = sums[thread];
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    const int from = divides ? (t * tile + thread) / divisor : t * tile + thread;
    staged[thread] = keys[from];
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < tile; first += 16) {
#pragma unroll
      for (int k = 0; k < 16; ++k) sum += weight(staged[first + k] * query);
    }
    __syncthreads();
  }
  sums[thread] = sum;
}

}  // namespace

__global__ void frugal_sums_kernel(float* sums, const float* keys, int tiles, int divisor) {
  sum_tiles<false>(sums, keys, tiles, divisor);
}
__global__ void dividing_sums_kernel(float* sums, const float* keys, int tiles, int divisor) {
  sum_tiles<true>(sums, keys, tiles, divisor);
}

__global__ void ordered_kernel(float* sums, const float* keys) {
  asm volatile("ld.relaxed.cta.global.f32 %0, [%1];" : "=f"(sums[0]) : "l"(keys));
}

}  // namespace headlab
