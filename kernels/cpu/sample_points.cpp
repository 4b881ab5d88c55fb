// SPDX-License-Identifier: Apache-2.0
// Compiled once for each SIMD target that Highway knows here: the part between HWY_BEFORE_NAMESPACE
// and HWY_AFTER_NAMESPACE once each, the rest once.
#include "kernels/cpu/sample_points.h"

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
#define HWY_TARGET_INCLUDE "kernels/cpu/sample_points.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/aligned_allocator.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#ifndef HEADLAB_KERNELS_CPU_SAMPLE_POINTS_DRAWN
#define HEADLAB_KERNELS_CPU_SAMPLE_POINTS_DRAWN
namespace headlab {
namespace {

/// What is drawn for consecutive points.
struct Drawn {
  std::span<float> x;             ///< [count][d]
  std::span<std::uint32_t> rows;  ///< [count], of the design's data file, else 0
  std::span<float> unit_noise;    ///< [count]
};

}  // namespace
}  // namespace headlab
#endif

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

#include "kernels/cpu/lanes-inl.h"
//
#include "kernels/cpu/draws-inl.h"

HWY_ATTR void draw(const Plan& plan, std::uint64_t replicate, std::uint64_t first, Drawn to) {
  const auto d = static_cast<std::size_t>(plan.d);
  const std::uint64_t seed = plan.fixed_design_seed.value_or(plan.seed);
  const std::uint64_t design = plan.fixed_design_seed ? 0 : replicate;
  const std::uint64_t choices = subsequence(plan.streams.design_choice, design);
  const TileStream points(seed, subsequence(plan.streams.design, design));
  const TileStream noises(plan.seed, subsequence(plan.streams.noise, replicate));
  const float* table = plan.table.rounded();
  const auto tile = hwy::AllocateAligned<Tile>(static_cast<std::size_t>(point_buffer(plan.d)));

  for (std::size_t begin = 0; begin < to.rows.size(); begin += tile_points) {
    const std::size_t count = std::min(tile_points, to.rows.size() - begin);
    std::visit(
        [&](const auto& sampler) HWY_ATTR {
          using Sampler = std::decay_t<decltype(sampler)>;
          if constexpr (Sampler::base != BaseDraw::none) {
            draw_base(Sampler::base, points, first + begin, quads_per_point(plan.d), tile.get());
          }
          if constexpr (Sampler::chooses) {
            for (std::size_t i = 0; i < tile_points; ++i) {
              const std::uint32_t word = philox(seed, choices, first + begin + i).w[0];
              const std::uint32_t row = sampler(table, word, &tile[0].v[i], tile_points);
              if (i < count) to.rows[begin + i] = row;
            }
          } else {
            sampler(table, 0, tile.get(), 1);
            std::fill_n(&to.rows[begin], count, 0u);
          }
        },
        plan.design);
    float* x = &to.x[begin * d];
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < d; ++j) x[i * d + j] = tile[j].v[i];
    }
    const Tile unit = std::visit([&](const auto& noise)
                                     HWY_ATTR { return draw_noise(noise, noises, first + begin); },
                                 plan.noise);
    std::copy_n(unit.v, count, &to.unit_noise[begin]);
  }
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(draw);

/// Points drawn before they are evaluated: they stay in the cache.
constexpr std::size_t points_at_once = 16 * tile_points;

/// X_i [d] in float64, i within the points drawn.
void widen(const Drawn& drawn, std::size_t i, std::vector<double>& x) {
  std::copy_n(&drawn.x[i * x.size()], x.size(), x.begin());
}

}  // namespace

void sample_points(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                   const SamplePoints& to) {
  const auto d = static_cast<std::size_t>(plan.d);
  const double* table = plan.table.exact();
  std::uint32_t rows[points_at_once];
  float unit_noise[points_at_once];
  std::vector<double> x(d);
  for (std::size_t begin = 0; begin < to.y.size(); begin += points_at_once) {
    const std::size_t count = std::min(points_at_once, to.y.size() - begin);
    const Drawn drawn{to.x.subspan(begin * d, count * d), {rows, count}, {unit_noise, count}};
    HWY_DYNAMIC_DISPATCH(draw)(plan, replicate, first + begin, drawn);
    std::visit(
        [&](const auto& m) {
          for (std::size_t i = 0; i < count; ++i) {
            widen(drawn, i, x);
            to.regression[begin + i] = m(table, x.data(), 1, rows[i]);
          }
        },
        plan.regression);
    std::visit(
        [&](const auto& noise) {
          for (std::size_t i = 0; i < count; ++i) {
            if constexpr (!std::decay_t<decltype(noise)>::constant_scale) widen(drawn, i, x);
            const double sd = noise.scale(table, x.data(), 1);
            to.noise_sd[begin + i] = sd;
            to.y[begin + i] = to.regression[begin + i] + sd * static_cast<double>(unit_noise[i]);
          }
        },
        plan.noise);
  }
}

}  // namespace headlab
#endif  // HWY_ONCE
