// SPDX-License-Identifier: Apache-2.0
/// \file The heads' biases and covariances to leading order in 1/n, with what the next orders say
/// they are worth.
#pragma once

#include <vector>

#include "validation/theory/model/model.h"

namespace headlab {

/// Closed forms of first order at one query, and the signed terms that come next.
struct FirstOrder : HeadTheory {
  Eigen::VectorXd next_bias;        ///< [H], of order 1/n^2
  Eigen::MatrixXd next_covariance;  ///< [H][H], of order 1/n^2
};

/// Computes, with D_h = E K_h, r_h = E[K_h m]/D_h, mu_ab = E[K_h^a K_l^b]/(D_h^a D_l^b), nu_2 =
/// mu_11 at l = h, and E_hl the mean under the weight K_h K_l,
///
///     C_hl ~ mu_11 (E_hl[m^2 + s^2] - (r_h + r_l) E_hl[m] + r_h r_l)/n,   V_h = C_hh
///     B_h  ~ r_h - m(x) - nu_2 (E_hh[m] - r_h)/n
///
/// by the tilts of tilted_design.h: Gaussian kernel and softmax, normal and mixture designs. The
/// remainders are those of next_orders.h, with the rounding of the expectation in C_hl, which
/// counts where m is large beside its variation. The form is worth nothing where they are not
/// small.
///
/// Heads that see different tokens, c of them in common, have c/(N_h N_l) in place of 1/n.
///
/// \return one for each query of the model
std::vector<FirstOrder> first_order(const TheoryModel& model);

}  // namespace headlab
