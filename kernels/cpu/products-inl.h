// SPDX-License-Identifier: Apache-2.0
// Small matrix products of points with rows of coefficients: queries with keys, projections with
// design points. Included once per SIMD target.
//
// Points come in tiles [depth][tile_points]. A register tile is Rows rows by `vectors` SIMD vectors
// of points. With 6 by 2 sums, two vectors of points and one coefficient take 15 of AVX2's 16
// registers; 8 by 2 leave AVX-512 some of its 32.

inline constexpr std::size_t most_rows = lane_count == 16 ? 8 : 6;

/// Calls body.template operator()<Rows>(first) for register tiles that cover rows 0 .. count - 1.
template <class Body>
HWY_ATTR HWY_INLINE void for_row_tiles(std::size_t count, const Body& body) {
  std::size_t row = 0;
  for (; row + most_rows <= count; row += most_rows) body.template operator()<most_rows>(row);
  for (; row + 2 <= count; row += 2) body.template operator()<2>(row);
  if (row < count) body.template operator()<1>(row);
}

/// For `tiles` tiles one after another, each of Rows rows and each point p of a tile:
///   inner products    out[row][p] = start[p] factor + sum_j rows[row][j] tile[j][p]
///   Distances         out[row][p] = finish(sum_j (rows[row][j] - tile[j][p])^2)
/// `start` may be null. Sums run over j in order, so their bits do not depend on the register tile.
template <std::size_t Rows, bool Distances, class Finish>
HWY_ATTR HWY_INLINE void multiply_tiles(const float* HWY_RESTRICT tile, std::size_t tiles,
                                        std::size_t depth, const float* const* rows,
                                        const float* HWY_RESTRICT start, float factor,
                                        float* const* out, const Finish& finish) {
  constexpr std::size_t in_tile = tile_points / lane_count;
  constexpr std::size_t vectors = in_tile < 2 ? in_tile : 2;
  for (std::size_t t = 0; t < tiles; ++t, tile += depth * tile_points) {
    for (std::size_t at = 0; at < tile_points; at += vectors * lane_count) {
      const std::size_t first_point = t * tile_points + at;
      Float sum[Rows][vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        Float first = hn::Zero(float_tag);
        if (start != nullptr) {
          first = hn::Mul(hn::Load(float_tag, start + first_point + v * lane_count),
                          hn::Set(float_tag, factor));
        }
        for (std::size_t r = 0; r < Rows; ++r) sum[r][v] = first;
      }
#pragma GCC unroll 4
      for (std::size_t j = 0; j < depth; ++j) {
        Float point[vectors];
        for (std::size_t v = 0; v < vectors; ++v) {
          point[v] = hn::Load(float_tag, tile + j * tile_points + at + v * lane_count);
        }
        for (std::size_t r = 0; r < Rows; ++r) {
          const Float coefficient = hn::Set(float_tag, rows[r][j]);
          for (std::size_t v = 0; v < vectors; ++v) {
            if constexpr (Distances) {
              const Float difference = hn::Sub(point[v], coefficient);
              sum[r][v] = hn::MulAdd(difference, difference, sum[r][v]);
            } else {
              sum[r][v] = hn::MulAdd(coefficient, point[v], sum[r][v]);
            }
          }
        }
      }
      for (std::size_t r = 0; r < Rows; ++r) {
        for (std::size_t v = 0; v < vectors; ++v) {
          hn::Store(finish(sum[r][v]), float_tag, out[r] + first_point + v * lane_count);
        }
      }
    }
  }
}
