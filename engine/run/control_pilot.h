// SPDX-License-Identifier: Apache-2.0
/// \file The pilot study behind exact controls, and the test of their means.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/run/session.h"
#include "engine/scenario/preparation.h"
#include "kernels/backend.h"

namespace headlab {

struct Condition;
struct Plan;

/// The plan of the pilot: that of the condition, keyed with the pilot's own seed and drawn from
/// streams of its own, with controls that have no coefficients yet.
Plan control_pilot_plan(const Condition& condition, const Preparation& found,
                        const ControlMeans& means);

/// Bound of the relative error that kernel sums of a backend may share in all replicates, as far as
/// float32 or float64 makes it.
/// \param log_scale of the sums of a head at a query \param n tokens
double kernel_sum_rounding(const Backend& backend, double log_scale, std::uint64_t n);
/// That of an estimate, relative to the values it is a mean of, over that of its kernel sum.
inline constexpr double estimate_rounding_share = 0.25;

/// Rounding of the kernel sums of a head at a query.
struct SumRounding {
  double bound = 0;       ///< of the relative error that all replicates may share
  double coarseness = 1;  ///< the bound over kernel_sum_rounding
};
/// Tensor cores truncate, which no bound for all sizes and models of GPU describes well: of a
/// backend other than `reference` and `cpu` a worker of `cpu` computes the first replicates of the
/// pilot too, when its own workers are gone.
bool pilot_needs_cpu(const Backend& backend);

/// Those of a pilot [Q][H], to which the mean difference from `cpu` is added where it is needed.
/// \param statistics of the pilot, [replicates][layout.statistics()]
std::vector<SumRounding> sum_roundings(const Backend& backend, const Plan& plan,
                                       std::span<const double> statistics);

/// What the exact means of a condition's controls take at most; 0 without controls.
struct ControlCost {
  double seconds = 0;
  double bytes = 0;
};
ControlCost control_cost(const Condition& condition);

/// Finds the controls of a condition that asks for them, once its heads and weights are found; for
/// others there is nothing to find. They depend on the scenario and the backend, not on the
/// threads, the run's seed or its replicates. Throws InvalidInput where the means are not known.
/// False where the session stopped the pilot.
[[nodiscard]] bool find_controls(const Condition& condition, Preparation& found,
                                 const Session& session);

}  // namespace headlab
