// SPDX-License-Identifier: Apache-2.0
// The SIMD vector of floats of a target.
#if defined(HEADLAB_CPU_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_LANES_INL_H
#undef HEADLAB_CPU_LANES_INL_H
#else
#define HEADLAB_CPU_LANES_INL_H
#endif

#include <cstddef>
#include <limits>

#include <hwy/highway.h>

#include "kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using Float = hn::Vec<FloatTag>;
inline constexpr FloatTag float_tag;
inline constexpr std::size_t lane_count = hn::MaxLanes(float_tag);
static_assert(tile_points % lane_count == 0);

/// Exponent of a weight of 0.
inline constexpr float never = -std::numeric_limits<float>::infinity();

/// Sum over the lanes.
HWY_INLINE double total(Float lanes) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, lanes)));
}

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
