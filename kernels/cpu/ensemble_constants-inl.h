// SPDX-License-Identifier: Apache-2.0
// What an ensemble of heads decides when it is made: sizes that fit the caches, and which sums are
// needed.
#if defined(HEADLAB_CPU_ENSEMBLE_CONSTANTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_ENSEMBLE_CONSTANTS_INL_H
#undef HEADLAB_CPU_ENSEMBLE_CONSTANTS_INL_H
#else
#define HEADLAB_CPU_ENSEMBLE_CONSTANTS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <variant>
#include <vector>

#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/pair_sums-inl.h"
#include "kernels/cpu/sums-inl.h"
#include "kernels/cpu/tiling.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Tiles of a segment, over which sums are float32: 128 additions in every lane.
inline constexpr std::size_t segment_tiles = 128 * lane_count / tile_points;
static_assert(slab_step % (segment_tiles * tile_points) == 0);

/// What is decided once for all replicates.
struct EnsembleConstants {
  std::size_t queries = 0;
  std::size_t heads = 0;  ///< distinct ones
  std::size_t k = 0;
  bool conditional = false;
  bool constant_scale = false;        ///< of the noise
  bool keeps_all = true;              ///< stage `keep` is off
  bool shares_kept = false;           ///< heads keep one set of tokens
  bool has_key_prior = false;         ///< of the kernel law
  bool counts_empty_windows = false;  ///< of the kernel law
  bool squares_in_products = false;   ///< sums of w^2 are among those of products
  bool recomputes = false;            ///< some condition needs the pass `ensemble`
  bool needs_pairs = false;           ///< the first pass takes products of heads
  std::size_t key_tiles = 0;          ///< of a panel where weights are not kept
  std::size_t weight_tiles = 0;       ///< of a panel where they are
  std::size_t l2_panels = 0;          ///< that all queries of a batch meet before the next ones
  std::size_t batch = 0;              ///< queries that have running sums of pairs at once
  std::size_t buffer_size = 0;        ///< weights of a group of queries at a panel

  EnsembleConstants(const Plan& plan, std::size_t distinct_heads,
                    const std::vector<PairSums>& conditions)
      : queries(static_cast<std::size_t>(plan.queries)),
        heads(distinct_heads),
        k(static_cast<std::size_t>(plan.k)),
        conditional(plan.estimator == Estimator::conditional),
        constant_scale(has_constant_noise(plan)),
        keeps_all(plan.mechanism.keep.off()),
        shares_kept(plan.mechanism.keep.shared),
        has_key_prior(std::visit([](const auto& law) { return law.has_key_prior; }, *plan.kernel)),
        counts_empty_windows(
            std::visit([](const auto& law) { return law.counts_empty_windows; }, *plan.kernel)),
        squares_in_products(std::ranges::all_of(conditions, &PairSums::has_squares)),
        recomputes(std::ranges::any_of(conditions, &PairSums::recomputes)) {
    needs_pairs =
        conditional && !(constant_scale && std::ranges::all_of(conditions, &PairSums::recomputes));
    // Short panels are slow, because of what is done once a panel, and more so where weights are
    // kept: there AVX-512 has twice the keys.
    const std::size_t rows = group_queries * (conditional || shares_kept ? heads : 1);
    const std::size_t kept = std::min((lane_count == 16 ? 2 : 1) * l1_keys / k,
                                      std::max(l2_weights / rows, 16 * lane_count));
    const std::size_t max_tiles = lane_count == 16 ? segment_tiles : 16;
    key_tiles = std::clamp<std::size_t>(l1_keys / k / tile_points, 2, max_tiles);
    weight_tiles = std::clamp<std::size_t>(kept / tile_points, 2, max_tiles);
    buffer_size = std::max(group_queries * key_tiles, rows * weight_tiles) * tile_points;
    const std::size_t tiles = conditional ? weight_tiles : key_tiles;
    l2_panels = std::max<std::size_t>(l2_keys / (heads * k) / (tiles * tile_points), 1);
    std::size_t pairs = 1;
    for (const PairSums& condition : conditions) {
      if (!condition.recomputes()) pairs = std::max(pairs, condition.pairs());
    }
    batch = std::max<std::size_t>(max_running_pairs / pairs / group_queries, 1) * group_queries;
  }
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
