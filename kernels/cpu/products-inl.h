// SPDX-License-Identifier: Apache-2.0
// Small matrix products of points with rows of coefficients: queries with keys, projections with
// design points. Included once per SIMD target.
//
// Points come in tiles [depth][tile_points]. A register tile is Rows rows by `vectors` SIMD vectors
// of points. With 6 by 2 sums, two vectors of points and one coefficient take 15 of AVX2's 16
// registers; 8 by 2 leave AVX-512 some of its 32.

inline constexpr std::size_t max_rows = lane_count == 16 ? 8 : 6;

/// Calls body.template operator()<Rows>(first) for register tiles of at most Most rows that cover
/// rows 0 .. count - 1.
template <std::size_t Most = max_rows, class Body>
HWY_ATTR HWY_INLINE void for_row_tiles(std::size_t count, const Body& body) {
  std::size_t row = 0;
  for (; row + Most <= count; row += Most) body.template operator()<Most>(row);
  for (; row + 2 <= count; row += 2) body.template operator()<2>(row);
  if (row < count) body.template operator()<1>(row);
}

/// Coefficients in a panel [depth][Rows], read through one pointer.
template <std::size_t Rows>
struct Panel {
  const float* first;

  HWY_INLINE float operator()(std::size_t row, std::size_t j) const {
    return first[j * Rows + row];
  }
};
/// Rows [depth] that lie anywhere.
struct ScatteredRows {
  const float* const* rows;

  HWY_INLINE float operator()(std::size_t row, std::size_t j) const { return rows[row][j]; }
};

/// The rows first .. first + Rows - 1 of rows [count][depth] as a panel, in the same place of
/// panels [count][depth].
template <std::size_t Rows>
void pack_panel(const float* rows, std::size_t depth, std::size_t first, float* panels) {
  for (std::size_t j = 0; j < depth; ++j) {
    for (std::size_t r = 0; r < Rows; ++r) {
      panels[first * depth + j * Rows + r] = rows[(first + r) * depth + j];
    }
  }
}

/// For `tiles` tiles one after another, each of Rows rows and each point p of a tile:
///   inner products    sum[row][p] = start[p] factor + sum_j rows(row, j) tile[j][p]
///   Distances         sum[row][p] = sum_j (rows(row, j) - tile[j][p])^2
/// and take(row, p, sums) of `Vectors` vectors of points from p on: a part of a tile, or several
/// tiles. `start` may be null. Sums run over j in order, so their bits do not depend on the
/// register tile.
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

/// The same, stored: out[row][p] = finish(sum[row][p]).
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
