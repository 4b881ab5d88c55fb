// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <stdexcept>

#include "tools/bench/yardsticks.h"

#if defined(HEADLAB_FAST_MATH)
#define HEADLAB_PLAIN_LOOP plain_loop_fast_math
#else
#define HEADLAB_PLAIN_LOOP plain_loop
#endif

namespace headlab::bench {

namespace {

template <std::size_t K>
void loop(const float* keys, const float* queries, const float* y, std::size_t n, std::size_t heads,
          std::size_t count, float scale, float* out) {
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t q = 0; q < count; ++q) {
      const float* query = &queries[(h * count + q) * K];
      float sum = 0;
      float weighted = 0;
      for (std::size_t i = 0; i < n; ++i) {
        float r2 = 0;
        for (std::size_t j = 0; j < K; ++j) {
          const float difference = keys[(h * K + j) * n + i] - query[j];
          r2 += difference * difference;
        }
        const float w = std::exp(-r2 * scale);
        sum += w;
        weighted += w * y[i];
      }
      out[h * count + q] = weighted / sum;
    }
  }
}

}  // namespace

void HEADLAB_PLAIN_LOOP(const float* keys, const float* queries, const float* y, std::size_t n,
                        std::size_t heads, std::size_t k, std::size_t count, float scale,
                        float* out) {
  switch (k) {
    case 1:
      return loop<1>(keys, queries, y, n, heads, count, scale, out);
    case 2:
      return loop<2>(keys, queries, y, n, heads, count, scale, out);
    case 4:
      return loop<4>(keys, queries, y, n, heads, count, scale, out);
    case 8:
      return loop<8>(keys, queries, y, n, heads, count, scale, out);
    case 16:
      return loop<16>(keys, queries, y, n, heads, count, scale, out);
    case 32:
      return loop<32>(keys, queries, y, n, heads, count, scale, out);
    case 64:
      return loop<64>(keys, queries, y, n, heads, count, scale, out);
    default:
      throw std::invalid_argument("plain loop: k must be 1, 2, 4, 8, 16, 32 or 64");
  }
}

}  // namespace headlab::bench
