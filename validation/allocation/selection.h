// SPDX-License-Identifier: Apache-2.0
/// \file Which of several candidates may have the least error: ranking and selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/moments/jackknife.h"

namespace headlab {

/// How sure a selection is, and what difference it lets pass.
struct SelectionGuarantee {
  double alpha = 0.05;  ///< chance that the set misses the best, over all looks, at most
  double zone = 0.01;   ///< share of the least error that does not matter
};

/// The least replicates of a look: 32 blocks (validation/allocation/block_runs.h), so that a t
/// quantile far out still means something.
inline constexpr std::uint64_t min_selection_look = 1024;

/// The replicates of the looks of a selection of at most `replicates`, ascending and in whole
/// blocks, a schedule fixed beforehand: 1/64, 1/16, 1/4 and all of them, where these differ and are
/// min_selection_look at least. Most candidates are far from the best and leave at the first.
std::vector<std::uint64_t> selection_looks(std::uint64_t replicates);

/// Level of each one-sided comparison among `candidates`, to be looked at `looks` times at most:
/// alpha / (looks (K - 1)).
double comparison_level(double alpha, std::size_t candidates, std::size_t looks);

/// What one look says.
struct Screening {
  std::vector<bool> kept;  ///< [candidates], may still be the best
  std::size_t least = 0;   ///< the candidate of least estimated error; always kept
  /// Upper bound of (error of `least` - least error of all), in units of the estimate of the
  /// former; 0 where it is the only one kept.
  double largest_loss = 0;
  /// Times the replicates with which, if errors are what they look like, every other candidate
  /// would be screened out or `least` be shown to lie within the zone of it; infinite where two
  /// tie exactly and the zone is 0.
  double growth = 0;
};

/// Screens candidates by paired differences of their estimated errors Y: i is screened out where
/// some j has
///     Y_i - Y_j > W_ij = t(1 - level; nodes - 1) SE(Y_i - Y_j),
/// with the jackknife's standard error of the difference, so that what candidates on common
/// training sets have in common cancels. This is the screening of Nelson, Swann, Goldsman and Song
/// (2001, Operations Research 49:950), with Bonferroni's bound in place of the product of
/// independent comparisons, which keeps it valid under common random numbers.
///
/// Guarantee. Let b be the best of K. With probability at least 1 - (K - 1) level a look has
///     (Y_b - Y_j) - (error_b - error_j) <= W_bj  for all j.                                 (1)
/// Then b is kept, as error_b <= error_j. The same event bounds the loss: read as an upper bound of
/// error_j - error_b it gives error_c - error_b <= Y_c - Y_b + W_cb for the candidate c of least
/// estimate, whatever b is among those kept (the constrained comparisons with the best of Hsu,
/// 1984, Annals of Statistics 12:1136). So both hold at every one of L looks, with probability 1 -
/// alpha, at comparison_level(); it takes the differences to be normal over the nodes.
///
/// \param errors      [candidates still in the race], at least one
/// \param node_counts [nodes], replicates of each node
/// \param level       of each comparison, see comparison_level()
Screening screen(std::span<const Jackknifed> errors, std::span<const double> node_counts,
                 double level, double zone);

}  // namespace headlab
