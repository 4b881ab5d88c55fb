// SPDX-License-Identifier: Apache-2.0
// The exponents of a head, compiled for a kernel law.
#if defined(HEADLAB_CPU_HEAD_OF_LAW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_HEAD_OF_LAW_INL_H
#undef HEADLAB_CPU_HEAD_OF_LAW_INL_H
#else
#define HEADLAB_CPU_HEAD_OF_LAW_INL_H
#endif

#include <algorithm>
#include <cstddef>

#include <hwy/highway.h>

#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/kernel_laws-inl.h"
#include "kernels/cpu/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Law is one of this target's laws.
template <class Law>
class HeadOfLaw : public Head {
 public:
  HeadOfLaw(std::size_t subspace, const Plan& plan, int head, double reach, const Law& law)
      : Head(subspace, plan, head, reach), law_(law) {}

#if HWY_TARGET <= HWY_AVX3
  HWY_ATTR void weigh(const KeyPanel& panel, std::size_t q, const WeightRow (&rows)[fused_rows],
                      bool squares) const override {
    const float* values = panel.set.values(panel.tile);
    constexpr std::size_t step = fused_vectors * lane_count / tile_points;  // tiles
    const std::size_t whole = panel.points / tile_points / step * step;
    exponents_of<fused_rows, fused_vectors>(
        keys_of(panel, 0), whole, q, products(),
        [&](std::size_t r, std::size_t at, Float(&t)[fused_vectors]) HWY_ATTR
        __attribute__((always_inline)) { rows[r].add(t, values, at, squares); });
    if (whole == panel.tiles) return;
    constexpr std::size_t vectors = fused_vectors / step;
    const Float none = hn::Set(float_tag, never);
    exponents_of<fused_rows, vectors>(
        keys_of(panel, whole), panel.tiles - whole, q, products(),
        [&](std::size_t r, std::size_t first, Float(&t)[vectors]) HWY_ATTR
        __attribute__((always_inline)) {
          const std::size_t at = whole * tile_points + first;
          for (std::size_t v = 0; v < vectors; ++v) {
            // Padding has zero weight.
            const std::size_t left = panel.points - std::min(panel.points, at + v * lane_count);
            t[v] = hn::IfThenElse(hn::FirstN(float_tag, left), t[v], none);
          }
          rows[r].add(t, values, at, squares);
        });
  }
#endif

  HWY_ATTR void mean_exponents(const KeyTile& tile, std::size_t q, float* out) const override {
    store<1>(tile, 1, q, products(), out, 0);
  }

 private:
  static constexpr bool has_products = HasNormCoefficient<Law>;
  static constexpr bool has_distances = !Law::has_key_prior;

  HWY_ATTR void fill(const KeyPanel& panel, std::size_t q, std::size_t rows, float* out,
                     std::size_t stride) const override {
    switch (rows) {
      case group_queries:
        return store<group_queries>(keys_of(panel, 0), panel.tiles, q, products(), out, stride);
      case 2:
        return store<2>(keys_of(panel, 0), panel.tiles, q, products(), out, stride);
      default:
        return store<1>(keys_of(panel, 0), panel.tiles, q, products(), out, stride);
    }
  }
  HWY_ATTR void fill_plain(const KeyPanel& panel, std::size_t q, float* out) const override {
    store<1>(keys_of(panel, 0), panel.tiles, q, !has_distances, out, 0);
  }

  /// Keys of a panel from one of its tiles on.
  KeyTile keys_of(const KeyPanel& panel, std::size_t tile) const {
    return {panel.set.keys(panel.tile + tile, subspace()),
            panel.set.norms(panel.tile + tile, subspace()),
            panel.set.spreads(panel.tile + tile, subspace())};
  }

  template <std::size_t Rows>
  HWY_ATTR void store(const KeyTile& keys, std::size_t tiles, std::size_t q, bool products,
                      float* out, std::size_t stride) const {
    constexpr std::size_t vectors = std::min<std::size_t>(tile_points / lane_count, 2);
    exponents_of<Rows, vectors>(
        keys, tiles, q, products,
        [&](std::size_t r, std::size_t at, Float(&t)[vectors]) HWY_ATTR
        __attribute__((always_inline)) {
          for (std::size_t v = 0; v < vectors; ++v) {
            hn::Store(t[v], float_tag, out + r * stride + at + v * lane_count);
          }
        });
  }

  /// Calls take(r, key, exponents) for Rows queries from q on and the keys of `tiles` tiles,
  /// `Vectors` vectors at a time; from inner products or from distances.
  template <std::size_t Rows, std::size_t Vectors, class Take>
  HWY_ATTR HWY_INLINE void exponents_of(const KeyTile& keys, std::size_t tiles, std::size_t q,
                                        bool products, const Take& take) const {
    const PackedRows<Rows> queries = coefficients<Rows>(q, products);
    if constexpr (has_products) {
      if (!has_distances || products) {
        const float* norms = has_distances ? keys.norms : nullptr;
        multiply_vectors<Rows, Vectors, false>(keys.keys, tiles, k(), queries, norms, factor(),
                                               take);
        return;
      }
    }
    if constexpr (has_distances) {
      if (has_products && keys.spreads != nullptr) {
        exponents_of_distances<Rows, Vectors, true>(keys.keys, tiles, queries, keys.spreads, take);
      } else {
        exponents_of_distances<Rows, Vectors, false>(keys.keys, tiles, queries, nullptr, take);
      }
    }
  }

  /// The same from distances; with Spread from |query - key|^2 + spread.
  template <std::size_t Rows, std::size_t Vectors, bool Spread, class Take>
  HWY_ATTR HWY_INLINE void exponents_of_distances(const float* keys, std::size_t tiles,
                                                  PackedRows<Rows> queries, const float* spreads,
                                                  const Take& take) const {
    const Float factor = hn::Set(float_tag, this->factor());
    const Float unit = hn::Set(float_tag, static_cast<float>(this->unit()));
    const Float to_base_2 = hn::Set(float_tag, static_cast<float>(log2_e));
    multiply_vectors<Rows, Vectors, true>(
        keys, tiles, k(), queries, nullptr, 0,
        [&](std::size_t r, std::size_t at, Float(&t)[Vectors]) HWY_ATTR
        __attribute__((always_inline)) {
          for (std::size_t v = 0; v < Vectors; ++v) {
            if constexpr (Spread) {
              t[v] = hn::Add(t[v], hn::Load(float_tag, spreads + at + v * lane_count));
            }
            if constexpr (has_products) {
              t[v] = hn::Mul(t[v], factor);
            } else {
              t[v] = hn::Mul(law_.log_weight(Lanes(hn::Mul(t[v], unit))).v, to_base_2);
            }
          }
          take(r, at, t);
        });
  }

  Law law_;
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
