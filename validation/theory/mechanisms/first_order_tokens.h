// SPDX-License-Identifier: Apache-2.0
/// \file First order in 1/n for heads on tokens: filtered keys of softmax heads, and points of a
/// sequence, with noise alone.
///
/// The noise part of a covariance is to leading order that of independent tokens with the law of
/// the filtered key, N(mu, tau^2 S). Tokens at a lag j whose keys have the correlation r_j count in
/// the relative second-order term, with means of two points in place of those of one:
///
///     sum_j [ nu_20(j) + nu_02(j) + nu_11(j) - M_21(j) - M_12(j) - 1 ]/n,
///     nu_20(j) = E K_h(0) K_h(j)/D_h^2 and so on, M_21(j) = E K_h(0) K_l(0) K_h(j)/(E[K_h K_l]
///     D_h)
///
/// The third order is that of independent tokens, for which these count by their correlation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validation/theory/first_order/first_order.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// One line where a stage of the model has no form of first order.
std::optional<std::string> first_order_obstacle(const TheoryModel& model);

/// first_order() for any model without an obstacle.
std::vector<FirstOrder> first_order_of_tokens(const TheoryModel& model);

}  // namespace headlab
