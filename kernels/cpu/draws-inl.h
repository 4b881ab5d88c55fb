// SPDX-License-Identifier: Apache-2.0
// The draws of a tile of points, compiled in draws.cpp.
#if defined(HEADLAB_CPU_DRAWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_DRAWS_INL_H
#undef HEADLAB_CPU_DRAWS_INL_H
#else
#define HEADLAB_CPU_DRAWS_INL_H
#endif

#include <cstdint>

#include <hwy/highway.h>

#include "kernels/cpu/draws.h"
#include "kernels/plan.h"
#include "kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Draws the points first, first + 1 and so on of a tile, x [4 ceil(d/4)], and the rows of the data
/// file they are. Points that depend on those before go on from `state`, or else from the first
/// one.
void draw_design_points(const Plan& plan, std::uint64_t replicate, std::uint64_t first, Tile* x,
                        TileRows& rows, SequenceState& state);

/// Draws noise of variance 1 for the points first, first + 1 and so on of a tile.
Tile draw_noise(const Plan& plan, std::uint64_t replicate, std::uint64_t first);

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
