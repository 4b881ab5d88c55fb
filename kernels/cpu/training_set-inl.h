// SPDX-License-Identifier: Apache-2.0
// Draws a training set, or takes one that is given, and projects it to the keys of every subspace,
// a slab of points at a time.
#if defined(HEADLAB_CPU_TRAINING_SET_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_TRAINING_SET_INL_H
#undef HEADLAB_CPU_TRAINING_SET_INL_H
#else
#define HEADLAB_CPU_TRAINING_SET_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/draws-inl.h"
#include "kernels/cpu/given_points.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/levels-inl.h"
#include "kernels/cpu/products-inl.h"
#include "kernels/cpu/tile_dot.h"
#include "kernels/cpu/tiling.h"
#include "kernels/cpu/transpose-inl.h"
#include "kernels/design_point.h"
#include "kernels/laws.h"
#include "kernels/plan.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The distinct subspaces of the heads of all conditions.
class PackedSubspaces {
 public:
  explicit PackedSubspaces(std::size_t d) : d_(d) {}

  /// Index of the subspace of W [d][k], which is added unless it is there.
  std::size_t add(const double* w, std::size_t k) {
    std::vector<float> rows;  // [k][d], so that a coordinate of the key reads one row
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t c = 0; c < d_; ++c) rows.push_back(static_cast<float>(w[c * k + j]));
    }
    for (std::size_t s = 0; s < all_.size(); ++s) {
      if (all_[s].k == k &&
          std::ranges::equal(rows, std::span(rows_).subspan(all_[s].first * d_, k * d_))) {
        return s;
      }
    }
    all_.push_back({k, rows_.size() / d_});
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    return all_.size() - 1;
  }

  std::size_t count() const { return all_.size(); }
  std::size_t k(std::size_t subspace) const { return all_[subspace].k; }
  /// Coordinates of all subspaces, and of those before this one.
  std::size_t coordinates() const { return rows_.size() / d_; }
  std::size_t first(std::size_t subspace) const { return all_[subspace].first; }
  /// Coefficients of one coordinate [d].
  const float* row(std::size_t coordinate) const { return &rows_[coordinate * d_]; }

 private:
  struct Subspace {
    std::size_t k;
    std::size_t first;
  };
  std::size_t d_;
  std::vector<Subspace> all_;
  std::vector<float> rows_;  ///< [coordinates][d]
};

/// The tokens of one training set in tiles of tile_points: projected keys, values and noise scales.
/// It holds one slab of them at a time; every load of another slab draws it. Points here are tokens
/// wherever they are not called drawn.
///
/// Loops over the lanes of a tile are plain C++ on the shared functors: the compiler vectorises
/// them for the target, and the bits do not depend on it.
class TrainingSet {
 public:
  /// For the draws and the stages `merge` and `levels` of `plan` and the keys of `subspaces`, which
  /// must outlive it. Without slabs all points are held at once.
  /// \param seen tokens that some head sees; empty: all
  /// \param apart the keys of every level are asked for, not only their average
  /// \param given the points, which take the place of draws and of the noise
  TrainingSet(const Plan& plan, const PackedSubspaces& subspaces, std::vector<SeenTokens> seen = {},
              bool apart = false, bool in_slabs = true,
              std::optional<GivenPoints> given = std::nullopt)
      : plan_(plan),
        given_(given),
        merge_(plan.mechanism.merge),
        levels_(plan.mechanism.levels),
        means_(levels_),
        subspaces_(subspaces),
        seen_(std::move(seen)),
        n_(merge_.tokens(plan.n)),
        slab_tiles_(tiles_of_slab(in_slabs, apart)),
        keys_(allocate(level_size())),
        norms_(allocate(slab_tiles_ * subspaces.count() * tile_points)),
        spreads_(allocate(levels_.off() ? 0 : slab_tiles_ * subspaces.count() * tile_points)),
        level_keys_(allocate(apart ? levels_.weights.size() * level_size() : 0)),
        apart_(apart && !levels_.off()),
        values_(allocate(slab_tiles_ * tile_points)),
        scales_(allocate(slab_tiles_ * tile_points)),
        packed_(subspaces.coordinates() * static_cast<std::size_t>(plan.d)),
        point_(allocate_aligned<Tile>(static_cast<std::size_t>(point_buffer(plan.d)))),
        token_(allocate_aligned<Tile>(
            merge_.off() ? 1 : static_cast<std::size_t>(point_buffer(plan.d)))) {
    for_row_tiles(subspaces.coordinates(), [&]<std::size_t Rows>(std::size_t first) {
      pack_rows<Rows>(subspaces.row(0), static_cast<std::size_t>(plan.d), first, packed_.data());
    });
    for (std::size_t s = 0; s < subspaces.count(); ++s) {
      const std::size_t k = subspaces.k(s);
      for (std::size_t j = 0; j < k; ++j) {
        outputs_.push_back({key_offset(0, s) + j * tile_points, k * tile_points});
      }
    }
    // Medians over a few points: one far point or query must not move them.
    draw_points(0, 0);
    Tile value;
    Tile scale;
    evaluate_laws(value, scale);
    const double typical = median(scale.v);
    const bool constant_scale =
        std::visit([](const auto& noise) { return noise.constant_scale; }, *plan.noise);
    if (plan.estimator == Estimator::conditional && !constant_scale && typical > 0) {
      noise_unit_ = std::exp2(std::clamp(std::floor(std::log2(typical)), -120.0, 120.0));
    }
    point_centre_ = median(value.v);
    centre_ = point_centre_ * whole_group();
    constant_scale_ = constant_scale ? static_cast<double>(scale.v[0]) : 0;
    if (!merge_.off()) {
      const double share = merge_.weight(merge_.stride);
      constant_scale_ = static_cast<double>(
          static_cast<float>(std::sqrt(share * whole_group()) * constant_scale_));
    }
    if (!seen_.empty()) {
      // Parts that are never drawn have weight 0, whatever it multiplies.
      std::fill_n(keys_.get(), level_size(), 0.0f);
      std::fill_n(norms_.get(), slab_tiles_ * subspaces.count() * tile_points, 0.0f);
      if (!levels_.off()) {
        std::fill_n(spreads_.get(), slab_tiles_ * subspaces.count() * tile_points, 0.0f);
      }
      std::fill_n(values_.get(), slab_tiles_ * tile_points, 0.0f);
      std::fill_n(scales_.get(), slab_tiles_ * tile_points, 0.0f);
    }
  }

  std::uint64_t n() const { return n_; }
  /// s / noise_unit() of every token where it is constant.
  double constant_scale() const { return constant_scale_; }
  /// Constant near the values that is subtracted from them, which leaves more digits in float32.
  double centre() const { return centre_; }
  /// Power of two near s(X), so that squares of small weights times small s do not underflow; 1
  /// where s is constant or noise is drawn.
  double noise_unit() const { return noise_unit_; }

  std::size_t slabs() const {
    const std::uint64_t points = slab_tiles_ * tile_points;
    return static_cast<std::size_t>((n_ + points - 1) / points);
  }
  /// The first slab from this one on of which some head sees a token; slabs() if there is none.
  std::size_t next_slab(std::size_t from) const {
    if (seen_.empty()) return from;
    const std::uint64_t size = slab_tiles_ * tile_points;
    std::uint64_t next = slabs();
    const auto look = [&](std::uint64_t begin, std::uint64_t end) {
      if (std::max(begin, from * size) < end) next = std::min(next, std::max(begin / size, from));
    };
    for (const SeenTokens& seen : seen_) {
      look(0, seen.sinks);
      look(seen.begin, seen.end);
    }
    return static_cast<std::size_t>(next);
  }
  /// Draws a slab of a replicate, unless it is held already.
  void load(std::uint64_t replicate, std::size_t slab) {
    if (replicate_ == replicate && slab_ == slab) return;
    replicate_ = replicate;
    slab_ = slab;
    for (std::size_t tile = 0; tile < tiles(); ++tile) {
      if (!is_seen(tile)) continue;
      if (merge_.off()) {
        draw_points(replicate, first_tile() + tile);
        evaluate(replicate, tile);
        project(point_.get(), tile);
      } else {
        merge_points(replicate, tile);
        project(token_.get(), tile);
      }
    }
    if (!levels_.off()) average_levels();
  }
  /// True where some head sees a token of the tile, or of its block of the largest level.
  bool is_seen(std::size_t tile) const {
    if (seen_.empty()) return true;
    const std::uint64_t block = std::max<std::uint64_t>(levels_.block(), tile_points);
    const std::uint64_t first = (first_point() + tile * tile_points) / block * block;
    return std::ranges::any_of(seen_, [&](const SeenTokens& seen) {
      return first < seen.sinks || (first < seen.end && first + block > seen.begin);
    });
  }

  // Of the slab that is held; tiles count from its beginning.
  std::uint64_t first_point() const { return first_tile() * tile_points; }
  std::size_t points() const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(slab_tiles_ * tile_points, n_ - first_point()));
  }
  std::size_t tiles() const { return (points() + tile_points - 1) / tile_points; }
  /// Keys of a tile, and of those after it, in one subspace [tile][k][tile_points].
  const float* keys(std::size_t tile, std::size_t subspace) const {
    return &keys_[key_offset(tile, subspace)];
  }
  /// |key|^2 [tile_points].
  const float* norms(std::size_t tile, std::size_t subspace) const {
    return &norms_[(subspace * slab_tiles_ + tile) * tile_points];
  }
  /// With `levels`: sum_l lambda_l |key at level l - key|^2 [tile_points]; null without.
  const float* spreads(std::size_t tile, std::size_t subspace) const {
    return levels_.off() ? nullptr : &spreads_[(subspace * slab_tiles_ + tile) * tile_points];
  }
  /// Where they are held apart: the mean keys of level l, as keys() has them.
  const float* level_keys(std::size_t l, std::size_t tile, std::size_t subspace) const {
    return &level_keys_[l * level_size() + key_offset(tile, subspace)];
  }
  /// m(X_i), for the plain estimator plus e_i, less the centre [tile_points].
  const float* values(std::size_t tile) const { return &values_[tile * tile_points]; }
  /// s(X_i) / noise_unit() [tile_points].
  const float* scales(std::size_t tile) const { return &scales_[tile * tile_points]; }

  /// Draws the design points of tile `tile` of the whole set into point() [4 ceil(d/4)].
  HWY_ATTR void draw_points(std::uint64_t replicate, std::uint64_t tile) {
    if (given_) return take_given(tile * tile_points);
    draw_design_points(plan_, replicate, tile * tile_points, point_.get(), rows_drawn_, sequence_);
  }
  const Tile* point() const { return point_.get(); }

  /// Values and noise scales of the tile's points, which point() holds.
  HWY_ATTR void evaluate(std::uint64_t replicate, std::size_t tile) {
    Tile value;
    Tile scale;
    evaluate_points(replicate, (first_tile() + tile) * tile_points, value, scale);
    std::copy_n(value.v, tile_points, &values_[tile * tile_points]);
    std::copy_n(scale.v, tile_points, &scales_[tile * tile_points]);
  }

  /// Keys of one tile from its design points x [4 ceil(d/4)]: W^T x for all subspaces at once.
  HWY_ATTR void project(const Tile* x, std::size_t tile) {
    const auto d = static_cast<std::size_t>(plan_.d);
    constexpr std::size_t vectors = std::min<std::size_t>(tile_points / lane_count, 2);
    for_row_tiles(subspaces_.coordinates(), [&]<std::size_t Rows>(std::size_t first) HWY_ATTR {
      multiply_vectors<Rows, vectors, false>(
          x->v, 1, d, PackedRows<Rows>{&packed_[first * d]}, nullptr, 0,
          [&](std::size_t r, std::size_t at, const Float(&key)[vectors]) HWY_ATTR
          __attribute__((always_inline)) {
            const Output& output = outputs_[first + r];
            float* to = &keys_[output.first + tile * output.step];
            for (std::size_t v = 0; v < vectors; ++v) {
              hn::Store(key[v], float_tag, to + at + v * lane_count);
            }
          });
    });
    for (std::size_t s = 0; s < subspaces_.count(); ++s) {
      float* key = &keys_[key_offset(tile, s)];
      if (measure(s, tile, key)) continue;
      clamp_keys(key, subspaces_.k(s));
      measure(s, tile, key);
    }
  }

 private:
  /// Puts the points given from `first` on into point(), and 0 after the last one.
  HWY_ATTR void take_given(std::uint64_t first) {
    const auto d = static_cast<std::size_t>(plan_.d);
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(tile_points, plan_.n - first));
    const float* x = &given_->x[first * d];
    const std::size_t quads = count == tile_points ? d / 4 * 4 : 0;
    for (std::size_t c = 0; c < quads; c += 4) transpose_quads(x + c, d, &point_[c]);
    for (std::size_t c = quads; c < d; ++c) {
      float* to = point_[c].v;
      for (std::size_t i = 0; i < count; ++i) to[i] = x[i * d + c];
      std::fill(to + count, to + tile_points, 0.0f);
    }
    given_values_ = {};
    std::copy_n(&given_->y[first], count, given_values_.v);
  }

  /// m, less the centre, and s, in noise units, of the points that point() holds.
  HWY_ATTR void evaluate_laws(Tile& value, Tile& scale) const {
    const float* table = plan_.table.rounded();
    const auto centre = static_cast<float>(point_centre_);
    const auto per_unit = static_cast<float>(1 / noise_unit_);
    if (given_) {
      for (std::size_t i = 0; i < tile_points; ++i) value.v[i] = given_values_.v[i] - centre;
      std::fill_n(scale.v, tile_points, 0.0f);
      return;
    }
    std::visit(
        [&](const auto& m) HWY_ATTR {
          const Tile regression = m(table, point_.get(), 1, rows_drawn_);
          for (std::size_t i = 0; i < tile_points; ++i) value.v[i] = regression.v[i] - centre;
        },
        *plan_.regression);
    std::visit(
        [&](const auto& noise) HWY_ATTR {
          const Tile sd = noise.scale(table, point_.get(), 1);
          for (std::size_t i = 0; i < tile_points; ++i) scale.v[i] = sd.v[i] * per_unit;
        },
        *plan_.noise);
  }
  /// The same with the drawn noise of the plain estimator in the values.
  HWY_ATTR void evaluate_points(std::uint64_t replicate, std::uint64_t first, Tile& value,
                                Tile& scale) const {
    evaluate_laws(value, scale);
    if (plan_.estimator != Estimator::plain || given_) return;
    const Tile unit = draw_noise(plan_, replicate, first);
    for (std::size_t i = 0; i < tile_points; ++i) {
      value.v[i] = math::fused(scale.v[i], unit.v[i], value.v[i]);
    }
  }

  /// Sum of the weights of the points of a complete group.
  double whole_group() const {
    return merge_.weight(merge_.stride) * static_cast<double>(merge_.stride);
  }

  /// The sums of successive numbers of a tile that holds whole groups, in their order.
  HWY_ATTR void sum_groups(const float* HWY_RESTRICT of, float* HWY_RESTRICT to) const {
    switch (merge_.stride) {
      case 2:
        return sum_groups_of<2>(of, to);
      case 4:
        return sum_groups_of<4>(of, to);
      case 8:
        return sum_groups_of<8>(of, to);
      case 16:
        return sum_groups_of<16>(of, to);
      case 32:
        return sum_groups_of<32>(of, to);
      default:
        return sum_groups_of<1>(of, to);
    }
  }
  template <std::size_t Stride>
  HWY_ATTR HWY_INLINE static void sum_groups_of(const float* HWY_RESTRICT of,
                                                float* HWY_RESTRICT to) {
    static_assert(tile_points == 32, "sum_groups() has a case for each divisor");
    for (std::size_t i = 0; i < tile_points / Stride; ++i) {
      float sum = of[i * Stride];
      for (std::size_t j = 1; j < Stride; ++j) sum += of[i * Stride + j];
      to[i] = sum;
    }
  }

  /// Makes the tokens of a tile from the points drawn for them: X into token_, their values and
  /// noise scales.
  HWY_ATTR void merge_points(std::uint64_t replicate, std::size_t tile) {
    const auto d = static_cast<std::size_t>(plan_.d);
    const std::uint64_t first = (first_point() + tile * tile_points) * merge_.stride;
    Tile sums;
    Tile variances;
    std::fill_n(sums.v, tile_points, 0.0f);
    std::fill_n(variances.v, tile_points, 0.0f);
    for (std::size_t c = 0; c < d; ++c) std::fill_n(token_[c].v, tile_points, 0.0f);
    std::size_t token = 0;
    std::uint64_t in_token = 0;
    for (std::uint64_t part = 0; part < merge_.stride; ++part) {
      const std::uint64_t from = first + part * tile_points;
      if (from >= plan_.n) break;
      draw_points(replicate, from / tile_points);
      Tile value;
      Tile scale;
      evaluate_points(replicate, from, value, scale);
      const auto points =
          static_cast<std::size_t>(std::min<std::uint64_t>(tile_points, plan_.n - from));
      if (points == tile_points && tile_points % merge_.stride == 0) {
        for (std::size_t c = 0; c < d; ++c) sum_groups(point_[c].v, &token_[c].v[token]);
        sum_groups(value.v, &sums.v[token]);
        for (float& sd : scale.v) sd *= sd;
        sum_groups(scale.v, &variances.v[token]);
        token += tile_points / merge_.stride;
        continue;
      }
      for (std::size_t i = 0; i < points;) {
        const auto run =
            static_cast<std::size_t>(std::min<std::uint64_t>(points - i, merge_.stride - in_token));
        for (std::size_t c = 0; c < d; ++c) {
          float sum = token_[c].v[token];
          for (std::size_t j = i; j < i + run; ++j) sum += point_[c].v[j];
          token_[c].v[token] = sum;
        }
        for (std::size_t j = i; j < i + run; ++j) {
          sums.v[token] += value.v[j];
          variances.v[token] += scale.v[j] * scale.v[j];
        }
        i += run;
        in_token += run;
        if (in_token == merge_.stride) {
          in_token = 0;
          ++token;
        }
      }
    }
    float* value = &values_[tile * tile_points];
    float* scale = &scales_[tile * tile_points];
    for (std::size_t i = 0; i < tile_points; ++i) {
      const std::uint64_t begin = std::min(first + i * merge_.stride, plan_.n);
      const std::uint64_t points = std::min(merge_.stride, plan_.n - begin);
      const double weight = points == 0 ? 0.0 : merge_.weight(points);
      const auto v = static_cast<float>(weight);
      for (std::size_t c = 0; c < d; ++c) token_[c].v[i] *= v;
      // With a gate the centre of an incomplete group is another one.
      const double centre = point_centre_ * weight * static_cast<double>(points);
      value[i] = math::fused(v, sums.v[i], static_cast<float>(centre - centre_));
      scale[i] = v * math::sqrt(variances.v[i]);
    }
  }

  /// Replaces the keys of the slab by their averages over the levels, and sets norms and spreads.
  HWY_ATTR void average_levels() {
    for (std::size_t s = 0; s < subspaces_.count(); ++s) {
      for (std::size_t first = 0; first < points(); first += means_.block()) {
        const std::size_t tile = first / tile_points;
        if (!is_seen(tile)) continue;
        const std::size_t at = s * slab_tiles_ * tile_points + first;
        means_.average(&keys_[key_offset(tile, s)], subspaces_.k(s),
                       std::min(means_.block(), points() - first), &norms_[at], &spreads_[at],
                       apart_ ? &level_keys_[key_offset(tile, s)] : nullptr, level_size());
      }
    }
  }

  std::uint64_t first_tile() const { return slab_ * slab_tiles_; }
  /// Numbers of the keys of a slab.
  std::size_t level_size() const { return slab_tiles_ * subspaces_.coordinates() * tile_points; }
  std::size_t key_offset(std::size_t tile, std::size_t subspace) const {
    const std::size_t before = slab_tiles_ * subspaces_.first(subspace);
    return (before + tile * subspaces_.k(subspace)) * tile_points;
  }

  /// Place of a coordinate's keys: those of the first tile, and the distance to the next one.
  struct Output {
    std::size_t first, step;
  };

  /// Norms of the keys of a tile; false if one is so large that keys may not be finite.
  HWY_ATTR bool measure(std::size_t subspace, std::size_t tile, const float* key) {
    constexpr std::size_t vectors = tile_points / lane_count;
    Float norm2[vectors];
    for (Float& sum : norm2) sum = hn::Zero(float_tag);
    for (std::size_t j = 0; j < subspaces_.k(subspace); ++j) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const Float coordinate = hn::Load(float_tag, key + j * tile_points + v * lane_count);
        norm2[v] = hn::MulAdd(coordinate, coordinate, norm2[v]);
      }
    }
    float* norms = &norms_[(subspace * slab_tiles_ + tile) * tile_points];
    auto ordinary = hn::FirstN(float_tag, lane_count);
    for (std::size_t v = 0; v < vectors; ++v) {
      hn::Store(norm2[v], float_tag, norms + v * lane_count);
      // False for NaN.
      ordinary = hn::And(ordinary, hn::Le(norm2[v], hn::Set(float_tag, 1e36f)));
    }
    return hn::AllTrue(float_tag, ordinary);
  }
  /// Keeps products with queries finite, whatever the design draws.
  HWY_ATTR HWY_NOINLINE static void clamp_keys(float* key, std::size_t k) {
    const Float largest = hn::Set(float_tag, 1e24f);
    for (std::size_t i = 0; i < k * tile_points; i += lane_count) {
      const Float kept = hn::Max(hn::Load(float_tag, key + i), hn::Neg(largest));
      hn::Store(hn::Min(kept, largest), float_tag, key + i);
    }
  }

  /// Of the points of the first tile that there are.
  double median(const float* of) const {
    float numbers[tile_points];
    const auto points = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(n_, tile_points));
    std::copy_n(of, points, numbers);
    std::nth_element(numbers, numbers + points / 2, numbers + points);
    return static_cast<double>(numbers[points / 2]);
  }

  /// Of points that are given the smallest number, because they are not used again: their keys stay
  /// in L2, and a call allocates little.
  std::size_t tiles_of_slab(bool in_slabs, bool apart) const {
    const auto all = static_cast<std::size_t>((n_ + tile_points - 1) / tile_points);
    if (!in_slabs) return all;
    if (given_) return std::min<std::size_t>(slab_step / tile_points, all);
    const std::size_t floats =
        subspaces_.coordinates() * (1 + (apart ? levels_.weights.size() : 0)) +
        (levels_.off() ? 1 : 2) * subspaces_.count() + 2;
    return slab_points(n_, floats) / tile_points;
  }

  using Buffer = hwy::AlignedFreeUniquePtr<float[]>;
  static Buffer allocate(std::size_t size) {
    return allocate_aligned<float>(std::max<std::size_t>(size, 1));
  }

  const Plan& plan_;
  const std::optional<GivenPoints> given_;
  Tile given_values_ = {};  ///< Y of the points that point() holds
  const Merge merge_;
  const Levels levels_;
  LevelMeans means_;
  const PackedSubspaces& subspaces_;
  const std::vector<SeenTokens> seen_;
  std::uint64_t n_;
  std::size_t slab_tiles_;
  std::optional<std::uint64_t> replicate_;  ///< that is loaded
  std::size_t slab_ = 0;
  Buffer keys_;                  ///< [subspace][tile][k][tile_points]
  std::vector<Output> outputs_;  ///< [coordinates]
  Buffer norms_;                 ///< [subspace][tile][tile_points]
  Buffer spreads_;               ///< the same, with levels
  Buffer level_keys_;            ///< [level], as keys_, where they are held apart
  bool apart_;
  Buffer values_;
  Buffer scales_;
  std::vector<float> packed_;  ///< [coordinates][d], rows as for_row_tiles groups them
  hwy::AlignedFreeUniquePtr<Tile[]> point_;  ///< [4 ceil(d/4)]
  hwy::AlignedFreeUniquePtr<Tile[]> token_;  ///< [4 ceil(d/4)], X of merged points
  TileRows rows_drawn_ = {};
  SequenceState sequence_;
  double point_centre_ = 0;  ///< of the points drawn
  double constant_scale_ = 0;
  double centre_ = 0;
  double noise_unit_ = 1;
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
