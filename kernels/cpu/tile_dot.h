// SPDX-License-Identifier: Apache-2.0
/// \file The inner products of kernels/law/regression/regression.h for a tile of points, in place.
#pragma once

#include <cstddef>

#include "kernels/tile.h"

namespace headlab {

/// u.x of every point. The general one makes a new Tile for every coordinate, and compilers copy it
/// word by word, which is six times as slow.
[[gnu::always_inline]] inline Tile dot(const float* u, const Tile* x, int d,
                                       std::ptrdiff_t stride) {
  Tile sum(0);
  for (int j = 0; j < d; ++j) {
    const float* point = x[j * stride].v;
    for (std::size_t i = 0; i < tile_points; ++i) {
      sum.v[i] = math::fused(u[j], point[i], sum.v[i]);
    }
  }
  return sum;
}

/// u.x of every point for vectors u one after another.
template <int Count>
[[gnu::always_inline]] inline void dots(const float* u, const Tile* x, int d, std::ptrdiff_t stride,
                                        Tile (&sums)[Count]) {
  for (Tile& sum : sums) sum = Tile(0);
  for (int j = 0; j < d; ++j) {
    const float* point = x[j * stride].v;
#pragma GCC unroll 8
    for (int k = 0; k < Count; ++k) {
      for (std::size_t i = 0; i < tile_points; ++i) {
        sums[k].v[i] = math::fused(u[k * d + j], point[i], sums[k].v[i]);
      }
    }
  }
}

}  // namespace headlab
