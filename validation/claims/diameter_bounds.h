// SPDX-License-Identifier: Apache-2.0
/// \file Diameters of tokens in every replicate against what contraction_bounds.h allows them.
#pragma once

#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {

/// Compares the diameters of all layers in each replicate so far with the bound for the maps and
/// tokens drawn in it: with the memory of one head where there is one, else the doubly exponential
/// one. The conditions are softmax stacks with shared Gaussian maps, without skip, norm and MLP.
std::vector<Finding> within_diameter_bounds(Experiment& experiment);

}  // namespace headlab
