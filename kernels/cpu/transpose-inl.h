// SPDX-License-Identifier: Apache-2.0
// Rows of points to tiles, whose coordinates lie one behind the other.
#if defined(HEADLAB_CPU_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_TRANSPOSE_INL_H
#undef HEADLAB_CPU_TRANSPOSE_INL_H
#else
#define HEADLAB_CPU_TRANSPOSE_INL_H
#endif

#include <cstddef>

#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"
#include "kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
inline void transpose_quads(const float* HWY_RESTRICT x, std::size_t step, Tile* HWY_RESTRICT to) {
  for (std::size_t c = 0; c < 4; ++c) {
    for (std::size_t i = 0; i < tile_points; ++i) to[c].v[i] = x[i * step + c];
  }
}
#else
/// Four numbers of each of several rows: x in the first four lanes, x + 4 `step` in the next, ...
template <class D>
HWY_INLINE hn::Vec<D> load_quads(D tag, const float* x, std::size_t step) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  if constexpr (lanes == 4) {
    return hn::LoadU(tag, x);
  } else {
    const hn::Half<D> half;
    return hn::Combine(tag, load_quads(half, x + lanes / 2 * step, step),
                       load_quads(half, x, step));
  }
}

/// Four coordinates of the points of a tile, from rows x [tile_points] that are `step` apart to
/// `to` [4].
HWY_INLINE void transpose_quads(const float* HWY_RESTRICT x, std::size_t step,
                                Tile* HWY_RESTRICT to) {
  static_assert(lane_count % 4 == 0);
  for (std::size_t i = 0; i < tile_points; i += lane_count) {
    const float* row = x + i * step;
    const Float a = load_quads(float_tag, row, step);
    const Float b = load_quads(float_tag, row + step, step);
    const Float c = load_quads(float_tag, row + 2 * step, step);
    const Float d = load_quads(float_tag, row + 3 * step, step);
    // Within each four lanes: a0 c0 a1 c1, a2 c2 a3 c3, ...
    const Float ac_low = hn::InterleaveLower(float_tag, a, c);
    const Float ac_high = hn::InterleaveUpper(float_tag, a, c);
    const Float bd_low = hn::InterleaveLower(float_tag, b, d);
    const Float bd_high = hn::InterleaveUpper(float_tag, b, d);
    hn::Store(hn::InterleaveLower(float_tag, ac_low, bd_low), float_tag, to[0].v + i);
    hn::Store(hn::InterleaveUpper(float_tag, ac_low, bd_low), float_tag, to[1].v + i);
    hn::Store(hn::InterleaveLower(float_tag, ac_high, bd_high), float_tag, to[2].v + i);
    hn::Store(hn::InterleaveUpper(float_tag, ac_high, bd_high), float_tag, to[3].v + i);
  }
}
#endif

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
