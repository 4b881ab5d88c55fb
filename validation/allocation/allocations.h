// SPDX-License-Identifier: Apache-2.0
/// \file The ways to spend a budget of dimensions on heads, and the bandwidth that a rule gives to
/// each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validation/allocation/selection.h"

namespace headlab {

struct Condition;
struct KernelLaw;

/// H heads of dimension k.
struct Allocation {
  int heads = 1;
  int k = 1;
  bool operator==(const Allocation&) const = default;
};

/// Largest budget: H = D heads of dimension 1 are as many as a scenario takes.
inline constexpr int max_budget = 1024;

/// Returns the candidates under a budget D = `budget` in d dimensions: for every k from 1 to
/// min(d, D), not only the divisors of D, the most heads that fit, H = floor(D/k).
///
/// Fewer heads of the same k need no trial where heads are exchangeable: with equal weights the
/// mean of H heads is the mean, over the H ways to leave one out, of the means of H - 1, so that by
/// Jensen's inequality its expected squared error is at most theirs. In the terms of the
/// decomposition: bias^2 + V/H + (1 - 1/H) C falls in H, because C <= V. That is the error averaged
/// over the law of the heads (validation/allocation/block_runs.h draws random ones again); where
/// the law is fixed and the truth prefers some coordinates, a smaller set may do better.
std::vector<Allocation> enumerate_allocations(int budget, int d);

/// What the bandwidth does when k changes.
enum class BandwidthRule {
  fixed,     ///< the scenario's
  sqrt_dim,  ///< temperature t = sqrt(k), as in Transformers; Gaussian kernels b = t^(1/2) =
             ///< k^(1/4)
  rate,      ///< b = n^(-1/(2 beta + k)), beta = 2 derivatives
  tuned      ///< each allocation's own best, from a pilot (validation/allocation/tuning.h)
};

/// "fixed", "sqrt_dim", "rate", "tuned".
const char* rule_name(BandwidthRule rule);

/// The rule called `name`; throws InvalidInput, naming --bandwidth-rule.
BandwidthRule find_rule(const std::string& name);

/// The number that a kernel's width is written as: the temperature of softmax, the bandwidth of the
/// others.
double kernel_width(const KernelLaw& kernel);
void set_kernel_width(KernelLaw& kernel, double width);

/// Range of that number, as the kernel laws have it.
inline constexpr double min_kernel_width = 1e-6;
inline constexpr double max_kernel_width = 1e6;

/// Throws InvalidInput where `rule` says nothing about the kernel of `base`.
void require_rule_for(const Condition& base, BandwidthRule rule);

/// The width that `rule` gives to heads of the scenario's dimension at its n; under `tuned` its
/// own.
double width_by_rule(const Condition& condition, BandwidthRule rule);

/// Returns `base` once for each candidate, with its heads and the width that `rule` gives them;
/// under `tuned` all have the scenario's. The heads' law is the scenario's at sizes for which it is
/// defined and `haar` of seed 0 at others: `orthogonal` and `equiangular` heads need H k <= d. Only
/// the error is kept (aggregate moments), by the scenario's estimator.
///
/// `sqrt_dim` is the softmax's rule. A Gaussian kernel gets the bandwidth at which it gives the
/// weights of that softmax where projected keys have one norm, b^2 = t. For other kernels there is
/// no such bandwidth, and softmax has none that narrows its window with n, so these pairs are
/// refused. InvalidInput besides, with InvalidInput: a budget outside [1, max_budget]; a law of
/// subspaces or weights that is written for one size of head (principal_angles, explicit, file) or
/// fitted to it (optimal).
///
/// \param dims the k to choose from, all without one; InvalidInput, naming --dims, where none of
/// them
///        is at most min(d, budget)
std::vector<Condition> allocation_conditions(const Condition& base, int budget, BandwidthRule rule,
                                             const std::vector<int>& dims = {});

/// Throws InvalidInput, with what to write instead, where the law of subspaces or weights, or a
/// stage of the mechanism, is written for one size or number of heads.
void require_any_size(const Condition& base);

/// Throws InvalidInput where the stages of `base` or its sequence do not go with n points.
void require_points_for(const Condition& base, std::uint64_t n);

/// What studies of allocations are asked.
struct AllocateOptions {
  BandwidthRule rule = BandwidthRule::fixed;
  std::vector<int> dims = {};        ///< d_k to choose from; all without one
  std::uint64_t replicates = 65536;  ///< most, of each allocation; at least min_selection_look
  SelectionGuarantee guarantee = {};
};

/// Throws InvalidInput for too few replicates.
void require_replicates(const AllocateOptions& options);

}  // namespace headlab
