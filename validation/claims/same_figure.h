// SPDX-License-Identifier: Apache-2.0
/// \file Figures that are equal by construction, whatever is drawn.
#pragma once

#include "engine/moments/figure_name.h"
#include "kernels/plan.h"

namespace headlab {

/// True where a figure of one plan and one of another are the same in every replicate, but for
/// rounding: of the same training sets, kernel and queries, and of heads that weigh alike, or of
/// ensembles that give such heads the same weight. Weights of a head depend on W_K W_K' and W_Q
/// W_K' alone, so that frames of one subspace are one head.
bool is_same_figure(const Plan& a, const FigureName& of_a, const Plan& b, const FigureName& of_b);

}  // namespace headlab
