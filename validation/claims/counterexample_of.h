// SPDX-License-Identifier: Apache-2.0
/// \file Certificates from the conditions of an experiment.
#pragma once

#include "validation/claims/experiment.h"
#include "validation/search/counterexample.h"

namespace headlab {

/// Makes the counterexample that condition `first`, better by the claim, has the larger MSE: the
/// experiment's own scenario at its seed and replicates.
Counterexample counterexample_of(Experiment& experiment, std::size_t first, std::size_t second);

}  // namespace headlab
