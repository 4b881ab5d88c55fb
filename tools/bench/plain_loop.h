// SPDX-License-Identifier: Apache-2.0
/// \file What a user would write first: the yardstick of the kernel benchmarks.
#pragma once

#include <cstddef>

namespace headlab::bench {

/// NW estimates with the Gaussian kernel: out[h][q] = sum_i w_i y_i / sum_i w_i,
/// w_i = exp(-|query - key_i|^2 scale). keys [H][k][n], queries [H][Q][k], y [n], k 1, 2,
/// 4, 8, 16, 32 or 64 (known to the compiler, so that it can vectorise over keys). Compiled with
/// -O3 -march=native.
void plain_loop(const float* keys, const float* queries, const float* y, std::size_t n,
                std::size_t heads, std::size_t k, std::size_t count, float scale, float* out);

/// The same text compiled with -ffast-math as well, so that the compiler may vectorise exp and
/// sums.
void plain_loop_fast_math(const float* keys, const float* queries, const float* y, std::size_t n,
                          std::size_t heads, std::size_t k, std::size_t count, float scale,
                          float* out);

}  // namespace headlab::bench
