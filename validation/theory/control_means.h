// SPDX-License-Identifier: Apache-2.0
/// \file Exact means of the kernel sums that serve as control variates.
#pragma once

#include "engine/scenario/condition.h"
#include "kernels/controls.h"
#include "kernels/plan.h"

namespace headlab {

/// Computes the means for heads of independent tokens, N_h of which head h sees, c_hl of them in
/// common with head l. With E the mean over one design point X, K_h its kernel value and D_h = E
/// K_h, r_h = E[K_h m]/D_h:
///
///     E W_h = N_h D_h,  E[S_hl W_h W_l] = c_hl E[K_h K_l s^2(X)],
///     E g_h g_l = c_hl E[K_h K_l (m - r_h)(m - r_l)] / (N_h N_l D_h D_l),
///     Var d_h = (E K_h^2 / D_h^2 - 1)/N_h,  E d_h g_h = E[K_h^2 (m - r_h)]/(N_h D_h^2).
///
/// Where the design is a file, E is the mean over its rows in float32, as they are drawn, for every
/// kernel and regression; else the closed forms of
/// validation/theory/first_order/tilted_design.h are taken. Throws InvalidInput where there are
/// none.
ControlMeans control_means(const Condition& condition, const Plan& plan);

}  // namespace headlab
