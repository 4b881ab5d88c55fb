// SPDX-License-Identifier: Apache-2.0
/// \file Runs that end once figures are precise: what their targets ask of a scenario, and looks.
#pragma once

#include <span>
#include <vector>

#include "engine/moments/precision.h"
#include "engine/results/result.h"
#include "engine/scenario/references.h"

namespace headlab {

struct Scenario;

/// Throws InvalidInput unless the scenario has the conditions that targets name, one number of
/// replicates for all, and enough of them for standard errors.
void require_targets_fit(std::span<const PrecisionTarget> targets, const Scenario& scenario,
                         const References& references);

/// Throws InvalidInput where a condition does not have a figure that is to be precise, or never
/// defines it.
void require_targets_defined(std::span<const PrecisionTarget> targets,
                             const std::vector<ConditionResult>& conditions);

/// The look at what conditions of one number of replicates have.
Look look_at(std::span<const PrecisionTarget> targets,
             const std::vector<ConditionResult>& conditions);

}  // namespace headlab
