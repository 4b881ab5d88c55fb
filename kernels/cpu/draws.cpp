// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/draws.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <variant>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/targets.h"
#include "kernels/design_point.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/draws.cpp"
#include <hwy/foreach_target.h>
//

#include "kernels/cpu/base_draws-inl.h"
#include "kernels/cpu/draws-inl.h"
#include "kernels/laws.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

/// Base draws of the tile's points first, first + 1 and so on, x [4 quads], from the counters
/// point * quads + quad.
HWY_ATTR void draw_base(BaseDraw base, const TileStream& stream, std::uint64_t first,
                        std::uint64_t quads, Tile* x) {
  TileWords words;
  for (std::uint64_t quad = 0; quad < quads; ++quad) {
    stream.draw(first * quads + quad, quads, words);
    Tile* to = x + 4 * quad;
    if (base == BaseDraw::normal) {
      if constexpr (lane_count == 16) {
        normal_pairs<2>({words.w[0], words.w[2]}, {words.w[1], words.w[3]}, {to[0].v, to[2].v},
                        {to[1].v, to[3].v});
      } else {
        normal_pairs<1>({words.w[0]}, {words.w[1]}, {to[0].v}, {to[1].v});
        normal_pairs<1>({words.w[2]}, {words.w[3]}, {to[2].v}, {to[3].v});
      }
    } else {
      for (std::size_t j = 0; j < 4; ++j) {
        for (std::size_t i = 0; i < tile_points; ++i) {
          to[j].v[i] = uniform_symmetric(words.w[j][i]);
        }
      }
    }
  }
}

/// The same for points that depend on those before.
HWY_ATTR void draw_sequence(const Plan& plan, const TileStream& stream, std::uint64_t replicate,
                            std::uint64_t first, Tile* x, SequenceState& state) {
  const auto quads = static_cast<std::uint64_t>(quads_per_point(plan.d));
  if (state.last.empty() || state.replicate != replicate || state.next > first) {
    state = {replicate, 0, std::vector<float>(4 * quads)};
  }
  for (; state.next <= first; state.next += tile_points) {
    draw_base(BaseDraw::normal, stream, state.next, quads, x);
    for (std::size_t c = 0; c < state.last.size(); ++c) {
      for (std::size_t i = 0; i < tile_points; i += ar1_tile) {
        (*plan.ar1)(&x[c].v[i], 1, state.last[c], state.next + i == 0);
      }
    }
  }
}

}  // namespace

void draw_design_points(const Plan& plan, std::uint64_t replicate, std::uint64_t first, Tile* x,
                        TileRows& rows, SequenceState& state) {
  const std::uint64_t seed = plan.fixed_design_seed.value_or(plan.seed);
  const std::uint64_t design = plan.fixed_design_seed ? 0 : replicate;
  const float* table = plan.table.design();
  std::visit(
      [&](const auto& sampler) HWY_ATTR {
        using Sampler = std::decay_t<decltype(sampler)>;
        if constexpr (Sampler::base != BaseDraw::none) {
          const TileStream stream(seed, subsequence(plan.streams.design, design));
          if (plan.ar1) {
            draw_sequence(plan, stream, design, first, x, state);
          } else {
            draw_base(Sampler::base, stream, first, quads_per_point(plan.d), x);
          }
        }
        if constexpr (Sampler::chooses) {
          const std::uint64_t choices = subsequence(plan.streams.design_choice, design);
          for (std::size_t i = 0; i < tile_points; ++i) {
            const std::uint64_t point = first + i;
            const std::uint32_t word = philox(seed, choices, is_sequence(sampler) ? 0 : point).w[0];
            if constexpr (requires { sampler.successive; }) {
              // The padding of the last tile has rows that there may not be.
              const std::uint64_t last = plan.n - 1;
              rows.v[i] = sampler(table, word, &x->v[i], tile_points, std::min(point, last));
            } else {
              rows.v[i] = sampler(table, word, &x->v[i], tile_points);
            }
          }
        } else {
          sampler(table, 0, x, 1);
        }
      },
      *plan.design);
}

Tile draw_noise(const Plan& plan, std::uint64_t replicate, std::uint64_t first) {
  TileWords words;
  TileStream(plan.seed, subsequence(plan.streams.noise, replicate)).draw(first, 1, words);
  Tile unit;
  std::visit(
      [&](const auto& noise) HWY_ATTR {
        if constexpr (std::decay_t<decltype(noise)>::normal) {
          Tile unused;
          normal_pairs<1>({words.w[0]}, {words.w[1]}, {unit.v}, {unused.v});
        } else {
          for (std::size_t i = 0; i < tile_points; ++i) {
            unit.v[i] = noise.unit({{words.w[0][i], words.w[1][i], words.w[2][i], words.w[3][i]}});
          }
        }
      },
      *plan.noise);
  return unit;
}

namespace {

HWY_ATTR void sample(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                     const Points& to, SequenceState& sequence) {
  const auto d = static_cast<std::size_t>(plan.d);
  const double* table = plan.table.exact();
  const auto tile = allocate_aligned<Tile>(static_cast<std::size_t>(point_buffer(plan.d)));
  TileRows rows = {};
  std::vector<double> wide(tile_points * d);  // X of the tile in float64

  for (std::size_t begin = 0; begin < to.y.size(); begin += tile_points) {
    const std::size_t count = std::min(tile_points, to.y.size() - begin);
    draw_design_points(plan, replicate, first + begin, tile.get(), rows, sequence);
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
        *plan.regression);
    const Tile unit = draw_noise(plan, replicate, first + begin);
    double* noise_sd = &to.noise_sd[begin];
    double* y = &to.y[begin];
    std::visit(
        [&](const auto& noise) HWY_ATTR {
          for (std::size_t i = 0; i < count; ++i) {
            noise_sd[i] = noise.scale(table, &wide[i * d], 1);
            y[i] = regression[i] + noise_sd[i] * static_cast<double>(unit.v[i]);
          }
        },
        *plan.noise);
  }
}

void base_tile(BaseDraw base, std::uint64_t seed, std::uint64_t subsequence, std::uint64_t first,
               std::uint64_t quads, Tile* x) {
  draw_base(base, TileStream(seed, subsequence), first, quads, x);
}

void normal_pair_tile(const std::uint32_t* a, const std::uint32_t* b, Tile& first, Tile& second) {
  normal_pairs<1>({a}, {b}, {first.v}, {second.v});
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(draw_design_points);
HWY_EXPORT(draw_noise);
HWY_EXPORT(sample);
HWY_EXPORT(base_tile);
HWY_EXPORT(normal_pair_tile);

}  // namespace

void draw_training_points(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                          const Points& to, SequenceState& sequence) {
  HWY_DYNAMIC_DISPATCH(sample)(plan, replicate, first, to, sequence);
}

std::vector<float> draw_design_cpu(const Plan& plan, std::uint64_t replicate) {
  const auto n = static_cast<std::size_t>(plan.n);
  const auto d = static_cast<std::size_t>(plan.d);
  const auto tile = allocate_aligned<Tile>(static_cast<std::size_t>(point_buffer(plan.d)));
  TileRows rows = {};
  SequenceState state;
  std::vector<float> x;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % tile_points == 0) {
      HWY_DYNAMIC_DISPATCH(draw_design_points)(plan, replicate, i, tile.get(), rows, state);
    }
    for (std::size_t c = 0; c < d; ++c) x.push_back(tile[c].v[i % tile_points]);
  }
  return x;
}

void draw_base_cpu(BaseDraw base, std::uint64_t seed, std::uint64_t subsequence,
                   std::uint64_t first, std::uint64_t quads, Tile* x) {
  HWY_DYNAMIC_DISPATCH(base_tile)(base, seed, subsequence, first, quads, x);
}

Tile draw_noise_cpu(const Plan& plan, std::uint64_t replicate, std::uint64_t first) {
  return HWY_DYNAMIC_DISPATCH(draw_noise)(plan, replicate, first);
}

void normal_pair_cpu(const std::uint32_t* a, const std::uint32_t* b, Tile& first, Tile& second) {
  HWY_DYNAMIC_DISPATCH(normal_pair_tile)(a, b, first, second);
}

}  // namespace headlab
#endif  // HWY_ONCE
