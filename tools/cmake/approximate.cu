// SPDX-License-Identifier: Apache-2.0
// A kernel that rounds a quotient wrongly: the negative control of the test that draws are exact.
__global__ void approximate_kernel(float* x) {
  x[threadIdx.x] = __fdividef(x[threadIdx.x], 3.0f);
}
