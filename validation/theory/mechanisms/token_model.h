// SPDX-License-Identifier: Apache-2.0
/// \file A scenario with stages before the weights as a model of heads on tokens.
#pragma once

#include "engine/scenario/scenario.h"
#include "kernels/plan.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// Reads a scenario as theory_model() does, and its stages and its sequence:
///
///     transform             orthogonal columns of other lengths
///     merge                 fewer tokens, in other units (merge.h)
///     levels                those without weight at the finest scales are a merge (levels.h)
///     window, skip, sinks   tokens seen
///     keep                  as it is, with counts in tokens
///
/// Throws InvalidInput with one line that names the stage and the assumption that fails.
TheoryModel token_model(const Condition& condition, const Plan& plan);

}  // namespace headlab
