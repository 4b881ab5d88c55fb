// SPDX-License-Identifier: Apache-2.0
/// \file Certificates from the conditions of an experiment.
#pragma once

#include <cstddef>

#include "engine/moments/figure_name.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {

/// A figure of a condition of an experiment.
struct ConditionFigure {
  FigureName figure;
  std::size_t condition = 0;
};

/// Makes the counterexample that `first`, the lesser by the claim, is larger than `second`: the
/// experiment's own scenario at its seed and replicates. Both figures must be defined.
Counterexample counterexample_of(Experiment& experiment, const ConditionFigure& first,
                                 const ConditionFigure& second);

/// The same for the MSE of condition `first`, better by the claim, and that of `second`.
Counterexample counterexample_of(Experiment& experiment, std::size_t first, std::size_t second);

}  // namespace headlab
