// SPDX-License-Identifier: Apache-2.0
// Products of small matrices: rows of coefficients with points, for queries with keys and
// projections with design points.
//
// Points come in tiles [depth][tile_points]. A register tile is Rows rows by `Vectors` SIMD vectors
// of points. 6 by 2 sums, two vectors of points and one coefficient take 15 of AVX2's 16 registers;
// 8 by 2 leave some of AVX-512's 32.
#if defined(HEADLAB_CPU_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_PRODUCTS_INL_H
#undef HEADLAB_CPU_PRODUCTS_INL_H
#else
#define HEADLAB_CPU_PRODUCTS_INL_H
#endif

#include <cstddef>

#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"
#include "kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

inline constexpr std::size_t max_rows = lane_count == 16 ? 8 : 6;

/// Calls body.template operator()<Rows>(first) for register tiles of at most Max rows that cover
/// rows 0 .. count - 1.
template <std::size_t Max = max_rows, class Body>
HWY_ATTR HWY_INLINE void for_row_tiles(std::size_t count, const Body& body) {
  std::size_t row = 0;
  for (; row + Max <= count; row += Max) body.template operator()<Max>(row);
  for (; row + 2 <= count; row += 2) body.template operator()<2>(row);
  if (row < count) body.template operator()<1>(row);
}

/// Coefficients [depth][Rows], read through one pointer.
template <std::size_t Rows>
struct PackedRows {
  const float* first;

  HWY_INLINE float operator()(std::size_t row, std::size_t j) const {
    return first[j * Rows + row];
  }
};
/// Coefficients as separate rows [depth].
struct ScatteredRows {
  const float* const* rows;

  HWY_INLINE float operator()(std::size_t row, std::size_t j) const { return rows[row][j]; }
};

/// Packs the rows first .. first + Rows - 1 of rows [count][depth] into the same place of packed
/// [count][depth].
template <std::size_t Rows>
void pack_rows(const float* rows, std::size_t depth, std::size_t first, float* packed) {
  for (std::size_t j = 0; j < depth; ++j) {
    for (std::size_t r = 0; r < Rows; ++r) {
      packed[first * depth + j * Rows + r] = rows[(first + r) * depth + j];
    }
  }
}

/// Sums over the coordinates j of `tiles` consecutive tiles, for each of Rows rows and each point
/// p:
///     inner products    sum[row][p] = start[p] factor + sum_j rows(row, j) tile[j][p]
///     Distances         sum[row][p] = sum_j (rows(row, j) - tile[j][p])^2
/// Calls take(row, p, sums) with `Vectors` vectors of points from p on, which may span tiles.
/// `start` may be null. The sums run over j in order: their bits do not depend on the register
/// tile.
template <std::size_t Rows, std::size_t Vectors, bool Distances, class Coefficients, class Take>
HWY_ATTR HWY_INLINE void multiply_vectors(const float* HWY_RESTRICT tile, std::size_t tiles,
                                          std::size_t depth, Coefficients rows,
                                          const float* HWY_RESTRICT start, float factor,
                                          const Take& take) {
  constexpr std::size_t in_tile = tile_points / lane_count;
  for (std::size_t first = 0; first < tiles * in_tile; first += Vectors) {
    const float* from = tile + first / in_tile * depth * tile_points + first % in_tile * lane_count;
    Float sum[Rows][Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) {
      Float begin = hn::Zero(float_tag);
      if (start != nullptr) {
        begin = hn::Mul(hn::Load(float_tag, start + (first + v) * lane_count),
                        hn::Set(float_tag, factor));
      }
      for (std::size_t r = 0; r < Rows; ++r) sum[r][v] = begin;
    }
#pragma GCC unroll 4
    for (std::size_t j = 0; j < depth; ++j) {
      Float point[Vectors];
      for (std::size_t v = 0; v < Vectors; ++v) {
        point[v] = hn::Load(
            float_tag, from + (v / in_tile * depth + j) * tile_points + v % in_tile * lane_count);
      }
      for (std::size_t r = 0; r < Rows; ++r) {
        const Float coefficient = hn::Set(float_tag, rows(r, j));
        for (std::size_t v = 0; v < Vectors; ++v) {
          if constexpr (Distances) {
            const Float difference = hn::Sub(point[v], coefficient);
            sum[r][v] = hn::MulAdd(difference, difference, sum[r][v]);
          } else {
            sum[r][v] = hn::MulAdd(coefficient, point[v], sum[r][v]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) take(r, first * lane_count, sum[r]);
  }
}

/// Stores finish(sum[row][p]) of multiply_vectors in out[row][p].
template <std::size_t Rows, bool Distances, class Coefficients, class Finish>
HWY_ATTR HWY_INLINE void multiply_tiles(const float* HWY_RESTRICT tile, std::size_t tiles,
                                        std::size_t depth, Coefficients rows,
                                        const float* HWY_RESTRICT start, float factor,
                                        float* const* out, const Finish& finish) {
  constexpr std::size_t in_tile = tile_points / lane_count;
  constexpr std::size_t vectors = in_tile < 2 ? in_tile : 2;
  multiply_vectors<Rows, vectors, Distances>(
      tile, tiles, depth, rows, start, factor,
      [&](std::size_t r, std::size_t at, const Float(&sum)[vectors]) HWY_ATTR
      __attribute__((always_inline)) {
        for (std::size_t v = 0; v < vectors; ++v) {
          hn::Store(finish(sum[v]), float_tag, out[r] + at + v * lane_count);
        }
      });
}

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
