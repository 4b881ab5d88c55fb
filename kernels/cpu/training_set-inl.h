// SPDX-License-Identifier: Apache-2.0
// Draws a training set and projects it to the keys of every subspace, a slab of points at a time.
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

#include "kernels/cpu/draws-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/products-inl.h"
#include "kernels/cpu/tile_dot.h"
#include "kernels/cpu/tiling.h"
#include "kernels/design_point.h"
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

/// One training set in tiles of tile_points: projected keys, values and noise scales. It holds one
/// slab of the points at a time; every load of another slab draws it.
///
/// Loops over the lanes of a tile are plain C++ on the shared functors: the compiler vectorises
/// them for the target, and the bits do not depend on it.
class TrainingSet {
 public:
  /// For the draws of `plan` and the keys of `subspaces`, which must outlive it. Without slabs all
  /// points are held at once.
  TrainingSet(const Plan& plan, const PackedSubspaces& subspaces, bool in_slabs = true)
      : plan_(plan),
        subspaces_(subspaces),
        n_(plan.n),
        slab_tiles_(in_slabs
                        ? slab_points(plan.n, subspaces.coordinates() + subspaces.count() + 2) /
                              tile_points
                        : (static_cast<std::size_t>(plan.n) + tile_points - 1) / tile_points),
        keys_(allocate(slab_tiles_ * subspaces.coordinates() * tile_points)),
        norms_(allocate(slab_tiles_ * subspaces.count() * tile_points)),
        values_(allocate(slab_tiles_ * tile_points)),
        scales_(allocate(slab_tiles_ * tile_points)),
        packed_(subspaces.coordinates() * static_cast<std::size_t>(plan.d)),
        point_(hwy::AllocateAligned<Tile>(static_cast<std::size_t>(point_buffer(plan.d)))) {
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
    evaluate_laws(0);
    const double typical = median(scales(0));
    const bool constant_scale =
        std::visit([](const auto& noise) { return noise.constant_scale; }, plan.noise);
    if (plan.estimator == Estimator::conditional && !constant_scale && typical > 0) {
      noise_unit_ = std::exp2(std::clamp(std::floor(std::log2(typical)), -120.0, 120.0));
    }
    centre_ = median(values(0));
  }

  std::uint64_t n() const { return n_; }
  /// Constant near the values that is subtracted from them, which leaves more digits in float32.
  double centre() const { return centre_; }
  /// Power of two near s(X), so that squares of small weights times small s do not underflow; 1
  /// where s is constant or noise is drawn.
  double noise_unit() const { return noise_unit_; }

  std::size_t slabs() const {
    const std::uint64_t points = slab_tiles_ * tile_points;
    return static_cast<std::size_t>((n_ + points - 1) / points);
  }
  /// Draws a slab of a replicate, unless it is held already.
  void load(std::uint64_t replicate, std::size_t slab) {
    if (replicate_ == replicate && slab_ == slab) return;
    replicate_ = replicate;
    slab_ = slab;
    for (std::size_t tile = 0; tile < tiles(); ++tile) {
      draw_points(replicate, first_tile() + tile);
      evaluate(replicate, tile);
      project(point_.get(), tile);
    }
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
  /// m(X_i), for the plain estimator plus e_i, less the centre [tile_points].
  const float* values(std::size_t tile) const { return &values_[tile * tile_points]; }
  /// s(X_i) / noise_unit() [tile_points].
  const float* scales(std::size_t tile) const { return &scales_[tile * tile_points]; }

  /// Draws the design points of tile `tile` of the whole set into point() [4 ceil(d/4)].
  HWY_ATTR void draw_points(std::uint64_t replicate, std::uint64_t tile) {
    draw_design_points(plan_, replicate, tile * tile_points, point_.get(), rows_drawn_);
  }
  const Tile* point() const { return point_.get(); }

  /// Values and noise scales of the tile's points, which point() holds.
  HWY_ATTR void evaluate(std::uint64_t replicate, std::size_t tile) {
    evaluate_laws(tile);
    if (plan_.estimator != Estimator::plain) return;
    const Tile unit = draw_noise(plan_, replicate, (first_tile() + tile) * tile_points);
    float* HWY_RESTRICT value = &values_[tile * tile_points];
    const float* HWY_RESTRICT scale = &scales_[tile * tile_points];
    for (std::size_t i = 0; i < tile_points; ++i) {
      value[i] = math::fused(scale[i], unit.v[i], value[i]);
    }
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
  /// m, less the centre, and s, in noise units, of the tile's points.
  HWY_ATTR void evaluate_laws(std::size_t tile) {
    const float* table = plan_.table.rounded();
    float* HWY_RESTRICT value = &values_[tile * tile_points];
    float* HWY_RESTRICT scale = &scales_[tile * tile_points];
    const auto centre = static_cast<float>(centre_);
    const auto per_unit = static_cast<float>(1 / noise_unit_);
    std::visit(
        [&](const auto& m) HWY_ATTR {
          const Tile regression = m(table, point_.get(), 1, rows_drawn_);
          for (std::size_t i = 0; i < tile_points; ++i) value[i] = regression.v[i] - centre;
        },
        plan_.regression);
    std::visit(
        [&](const auto& noise) HWY_ATTR {
          const Tile sd = noise.scale(table, point_.get(), 1);
          for (std::size_t i = 0; i < tile_points; ++i) scale[i] = sd.v[i] * per_unit;
        },
        plan_.noise);
  }

  std::uint64_t first_tile() const { return slab_ * slab_tiles_; }
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

  using Buffer = hwy::AlignedFreeUniquePtr<float[]>;
  static Buffer allocate(std::size_t size) {
    return hwy::AllocateAligned<float>(std::max<std::size_t>(size, 1));
  }

  const Plan& plan_;
  const PackedSubspaces& subspaces_;
  std::uint64_t n_;
  std::size_t slab_tiles_;
  std::optional<std::uint64_t> replicate_;  ///< that is loaded
  std::size_t slab_ = 0;
  Buffer keys_;                  ///< [subspace][tile][k][tile_points]
  std::vector<Output> outputs_;  ///< [coordinates]
  Buffer norms_;                 ///< [subspace][tile][tile_points]
  Buffer values_;
  Buffer scales_;
  std::vector<float> packed_;  ///< [coordinates][d], rows as for_row_tiles groups them
  hwy::AlignedFreeUniquePtr<Tile[]> point_;  ///< [4 ceil(d/4)]
  TileRows rows_drawn_ = {};
  double centre_ = 0;
  double noise_unit_ = 1;
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
