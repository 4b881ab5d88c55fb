// SPDX-License-Identifier: Apache-2.0
/// \file Yardsticks of the kernel benchmarks: what a core can do at most, vector multiply-adds that
/// wait for nothing, and what a user would write first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headlab::bench {

/// Runs `rounds` rounds of independent float32 multiply-adds in registers and returns a sum of the
/// results, with the vectors that the `cpu` backend uses here.
float run_fmas(std::uint64_t rounds);

/// Multiply-adds of one lane in one round.
std::uint64_t fmas_per_round();

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
