// SPDX-License-Identifier: Apache-2.0
// Sums of weights over keys, of one head and of products of pairs of heads.
#if defined(HEADLAB_CPU_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_SUMS_INL_H
#undef HEADLAB_CPU_SUMS_INL_H
#else
#define HEADLAB_CPU_SUMS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <span>

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/exp2-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Index of the pair (h, l), h <= l, among those of `heads` heads, row by row.
inline std::size_t pair_index(std::size_t heads, std::size_t h, std::size_t l) {
  return h * heads - h * (h + 1) / 2 + l;
}

/// Running sums, each a SIMD vector whose lanes are added when it is drained.
class LaneSums {
 public:
  LaneSums() = default;
  explicit LaneSums(std::size_t count) : lanes_(allocate_aligned<float>(count * lane_count)) {
    std::fill_n(lanes_.get(), count * lane_count, 0.0f);
  }
  float* at(std::size_t i) { return &lanes_[i * lane_count]; }
  /// Returns the i-th sum and sets it to 0.
  HWY_ATTR double drain(std::size_t i) {
    const Float lanes = hn::Load(float_tag, at(i));
    hn::Store(hn::Zero(float_tag), float_tag, at(i));
    return total(lanes);
  }

 private:
  hwy::AlignedFreeUniquePtr<float[]> lanes_;
};

/// Rows have a multiple of this many vectors. AVX-512 has registers for two vectors at a time, and
/// one chain of dependent operations would leave most of the processor idle.
inline constexpr std::size_t row_vectors = lane_count == 16 ? 2 : 1;

/// Adds the weights of one row of exponents to three consecutive running sums: of w, w value and,
/// with Squares, w^2. Store replaces the exponents by the weights.
template <bool Clamp, bool Squares, bool Store>
HWY_ATTR void sum_row(float* HWY_RESTRICT row, const float* HWY_RESTRICT values, std::size_t keys,
                      float offset, float* HWY_RESTRICT sums) {
  const Exp2<Clamp> exp2(offset);
  Float weight = hn::Load(float_tag, sums);
  Float weighted_value = hn::Load(float_tag, sums + lane_count);
  Float weight_squared = hn::Load(float_tag, sums + 2 * lane_count);
  for (std::size_t i = 0; i < keys; i += row_vectors * lane_count) {
    Float w[row_vectors];
    for (std::size_t v = 0; v < row_vectors; ++v) {
      w[v] = hn::Load(float_tag, row + i + v * lane_count);
    }
    exp2(w);
    for (std::size_t v = 0; v < row_vectors; ++v) {
      const std::size_t at = i + v * lane_count;
      weight = hn::Add(weight, w[v]);
      weighted_value = hn::MulAdd(w[v], hn::Load(float_tag, values + at), weighted_value);
      if constexpr (Squares) weight_squared = hn::MulAdd(w[v], w[v], weight_squared);
      if constexpr (Store) hn::Store(w[v], float_tag, row + at);
    }
  }
  hn::Store(weight, float_tag, sums);
  hn::Store(weighted_value, float_tag, sums + lane_count);
  if constexpr (Squares) hn::Store(weight_squared, float_tag, sums + 2 * lane_count);
}

#if HWY_TARGET <= HWY_AVX3
/// Queries and vectors of keys whose exponents become weights in registers.
inline constexpr std::size_t fused_rows = 4;
inline constexpr std::size_t fused_vectors = 4;

/// sum_row for exponents in registers, with the same bits.
struct WeightRow {
  const StoredExp2* exp2;
  float* sums;  ///< of w, w value and, where `squares` asks for it, w^2
  float* out;   ///< where the weights are stored, or null

  template <std::size_t Vectors>
  HWY_INLINE void add(Float (&t)[Vectors], const float* values, std::size_t at,
                      bool squares) const {
    exp2->power(t);
    // Locals, because a store of a vector may alias the members.
    float* const to = sums;
    float* const weights = out;
    Float weight = hn::Load(float_tag, to);
    Float weighted_value = hn::Load(float_tag, to + lane_count);
    for (std::size_t v = 0; v < Vectors; ++v) {
      weight = hn::Add(weight, t[v]);
      weighted_value =
          hn::MulAdd(t[v], hn::Load(float_tag, values + at + v * lane_count), weighted_value);
    }
    hn::Store(weight, float_tag, to);
    hn::Store(weighted_value, float_tag, to + lane_count);
    if (squares) {
      Float square = hn::Load(float_tag, to + 2 * lane_count);
      for (std::size_t v = 0; v < Vectors; ++v) square = hn::MulAdd(t[v], t[v], square);
      hn::Store(square, float_tag, to + 2 * lane_count);
    }
    if (weights == nullptr) return;
    for (std::size_t v = 0; v < Vectors; ++v) {
      hn::Store(t[v], float_tag, weights + at + v * lane_count);
    }
  }
};
/// Queries in a group, which meet a panel of keys together.
inline constexpr std::size_t group_queries = fused_rows;
#else
inline constexpr std::size_t group_queries = max_rows;
#endif

/// Adds sum_i rows[r][i] columns[c][i] to the running sum c of those at sums[r], for all r and c
/// or, in a triangle, for r <= c.
template <std::size_t Rows, std::size_t Columns, bool Triangle>
HWY_ATTR HWY_INLINE void multiply_rows(const float* const* rows, const float* const* columns,
                                       std::size_t keys, float* const (&sums)[Rows]) {
  Float sum[Rows][Columns];
  // Unrolled, because g++ 12 would copy rows of sums as memory.
#pragma GCC unroll 4
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t c = Triangle ? r : 0; c < Columns; ++c) {
      sum[r][c] = hn::Load(float_tag, sums[r] + c * lane_count);
    }
  }
  for (std::size_t i = 0; i < keys; i += lane_count) {
    Float row[Rows];
    for (std::size_t r = 0; r < Rows; ++r) row[r] = hn::Load(float_tag, rows[r] + i);
    for (std::size_t c = 0; c < Columns; ++c) {
      const Float column = Triangle ? row[c] : hn::Load(float_tag, columns[c] + i);
      for (std::size_t r = 0; r < (Triangle ? c + 1 : Rows); ++r) {
        sum[r][c] = hn::MulAdd(row[r], column, sum[r][c]);
      }
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t c = Triangle ? r : 0; c < Columns; ++c) {
      hn::Store(sum[r][c], float_tag, sums[r] + c * lane_count);
    }
  }
}

/// Adds sum_i rows[h][i] rows[l][i] to the running sum pair_index(h, l) of `sums`, for all h <= l.
/// Four heads with themselves are 10 sums, two with four others 8: both leave registers for the
/// rows and hide the latency of a multiply-add. AVX-512 has registers for four with four others.
HWY_ATTR inline void add_products(std::span<float* const> rows, std::size_t keys, float* sums) {
  const std::size_t heads = rows.size();
  constexpr std::size_t step = lane_count == 16 ? 4 : 2;
  auto multiply = [&]<std::size_t Rows, std::size_t Columns, bool triangle = false>(
      std::size_t h, std::size_t l) HWY_ATTR {
    float* to[Rows];
    for (std::size_t r = 0; r < Rows; ++r) {
      to[r] = sums + pair_index(heads, h + r, l) * lane_count;
    }
    multiply_rows<Rows, Columns, triangle>(&rows[h], &rows[l], keys, to);
  };
  for (std::size_t l = 0; l < heads; l += 4) {
    const std::size_t columns = std::min<std::size_t>(heads - l, 4);
    switch (columns) {
      case 4:
        for (std::size_t h = 0; h < l; h += step) multiply.template operator()<step, 4>(h, l);
        multiply.template operator()<4, 4, true>(l, l);
        break;
      case 3:
        for (std::size_t h = 0; h < l; h += step) multiply.template operator()<step, 3>(h, l);
        multiply.template operator()<3, 3, true>(l, l);
        break;
      case 2:
        for (std::size_t h = 0; h < l; ++h) multiply.template operator()<1, 2>(h, l);
        multiply.template operator()<2, 2, true>(l, l);
        break;
      default:
        for (std::size_t h = 0; h < l; h += 4) multiply.template operator()<4, 1>(h, l);
        multiply.template operator()<1, 1, true>(l, l);
    }
  }
}

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
