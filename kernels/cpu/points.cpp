// SPDX-License-Identifier: Apache-2.0
// Compiled once for each SIMD target that Highway knows here: the part between HWY_BEFORE_NAMESPACE
// and HWY_AFTER_NAMESPACE once each, the rest once.
#include "kernels/cpu/points.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/design_point.h"
#include "kernels/tile.h"

// As for the cpu backend.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/points.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/aligned_allocator.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

#include "kernels/cpu/lanes-inl.h"
//
#include "kernels/cpu/draws-inl.h"

HWY_ATTR void sample(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                     const Points& to) {
  const auto d = static_cast<std::size_t>(plan.d);
  const double* table = plan.table.exact();
  const TileStream noises(plan.seed, subsequence(plan.streams.noise, replicate));
  const auto tile = hwy::AllocateAligned<Tile>(static_cast<std::size_t>(point_buffer(plan.d)));
  TileRows rows = {};
  std::vector<double> wide(tile_points * d);  // X of the tile in float64

  for (std::size_t begin = 0; begin < to.y.size(); begin += tile_points) {
    const std::size_t count = std::min(tile_points, to.y.size() - begin);
    draw_design_points(plan, replicate, first + begin, tile.get(), rows);
    float* x = &to.x[begin * d];
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < d; ++j) x[i * d + j] = tile[j].v[i];
    }
    std::copy_n(x, count * d, wide.begin());
    double* regression = &to.regression[begin];
    std::visit(
        [&](const auto& m) HWY_ATTR {
          for (std::size_t i = 0; i < count; ++i) {
            regression[i] = m(table, &wide[i * d], 1, rows.v[i]);
          }
        },
        plan.regression);
    double* noise_sd = &to.noise_sd[begin];
    double* y = &to.y[begin];
    std::visit(
        [&](const auto& noise) HWY_ATTR {
          const Tile unit = draw_noise(noise, noises, first + begin);
          for (std::size_t i = 0; i < count; ++i) {
            noise_sd[i] = noise.scale(table, &wide[i * d], 1);
            y[i] = regression[i] + noise_sd[i] * static_cast<double>(unit.v[i]);
          }
        },
        plan.noise);
  }
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(sample);

}  // namespace

void draw_training_points(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                          const Points& to) {
  HWY_DYNAMIC_DISPATCH(sample)(plan, replicate, first, to);
}

}  // namespace headlab
#endif  // HWY_ONCE
