// SPDX-License-Identifier: Apache-2.0
/// \file The heads' biases and covariances to leading order in 1/n, with the next term as a bound
/// on what they are worth.
#pragma once

#include <vector>

#include "validation/theory/model/head_theory.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// Computes, with D_h = E K_h, r_h = E[K_h m]/D_h, mu_ab = E[K_h^a K_l^b]/(D_h^a D_l^b), nu_2 =
/// mu_11 at l = h, and E_hl the mean under the weight K_h K_l,
///
///     C_hl ~ mu_11 (E_hl[m^2 + s^2] - (r_h + r_l) E_hl[m] + r_h r_l)/n,   V_h = C_hh
///     B_h  ~ r_h - m(x) - nu_2 (E_hh[m] - r_h)/n
///
/// by the tilts of tilted_design.h: Gaussian kernel and softmax, normal and mixture designs. The
/// remainder of C_hl is C_hl times the relative second-order term of its noise part,
///
///     (mu_20 + mu_02 + mu_11 - 1 - (M_21 + M_12)/M_11)/n,  M_ab = mu_ab E_ab[s^2]
///
/// (for V_h and constant noise (3 nu_2 - 1 - 2 nu_3/nu_2)/n), with the rounding of the expectation
/// in C_hl, which counts where m is large beside its variation; that of B_h is unknown. The form is
/// worth nothing where the relative term is not small.
///
/// Heads that see different tokens, c of them in common, have c/(N_h N_l) in place of 1/n, and the
/// relative term (mu_20 - M_21/M_11)/N_h + (mu_02 - M_12/M_11)/N_l + c (mu_11 - 1)/(N_h N_l).
///
/// \return one for each query of the model
std::vector<HeadTheory> first_order(const TheoryModel& model);

}  // namespace headlab
