// SPDX-License-Identifier: Apache-2.0
/// \file Exact means of the control variates of a plan.
#pragma once

#include <functional>

#include "kernels/controls.h"

namespace headlab {

struct Condition;
struct Plan;

/// Computes the scales w_h and the means of the controls (kernels/controls.h) for heads of
/// independent tokens, from expectations over one design point (point_means.h): over the rows of a
/// data file in float32, as they are drawn, for every kernel and regression; else in closed form,
/// for the gaussian and softmax kernels, normal and mixture designs and the regressions of
/// theory_model(). With phi_h = E exp(-s K_h) and N_h tokens,
///
///     E exp(-s W_h) = phi_h^N_h,
///     E W_h g_h exp(-s W_h) ~ N_h E[(m - r_h) K_h exp(-s K_h)] phi_h^(N_h - 1),
///
/// and so on for two heads, of c_hl common tokens, each with a bound of its error. A scale w_h is
/// near the one where E exp(-W_h / w_h) = 1/e, or for the gaussian kernel not below 1/2, where the
/// series cancel. Throws InvalidInput where nothing is known of the design, kernel or regression.
/// \param go_on asked between queries, with the share done; false: no means are returned
ControlMeans control_means(const Condition& condition, const Plan& plan,
                           const std::function<bool(double)>& go_on = {});

}  // namespace headlab
