// SPDX-License-Identifier: Apache-2.0
// Negative control of check_spills.cmake: registers have no addresses, so an array that is indexed
// by a number of the run lives in local memory.
namespace headlab {

__global__ void spilling_sums_kernel(float* values, const int* order) {
  float kept[64];
  for (int i = 0; i < 64; ++i) kept[order[i] % 64] = values[i];
  for (int i = 0; i < 64; ++i) values[i] = kept[order[64 + i] % 64];
}

}  // namespace headlab
