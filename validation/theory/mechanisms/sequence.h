// SPDX-License-Identifier: Apache-2.0
/// \file A head on points of an autoregressive sequence, exactly at n points. The head sees a
/// stationary Gaussian sequence U_i of correlation phi, whose step is diagonal in Hermite
/// polynomials, sum_k phi^k h_k(u) h_k(v): with T_s = (E h_j e^(-sK) h_k),
///
///     E exp(-s sum_i K_i) = e_0^T T Lambda T ... Lambda T e_0,  Lambda = diag(phi^k),
///
/// and the factors of one or two points are replaced for the moments of what it estimates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <Eigen/Core>

#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// One line where a head on dependent points is not covered: what it sees is one scalar, without
/// gaps; the regression is a function of that scalar; and the normal design has a bearable number
/// of points.
std::optional<std::string> sequence_obstacle(const TheoryModel& model, std::size_t query,
                                             std::size_t h);

struct SequenceMoments : HeadMoments {
  Eigen::VectorXd weights;  ///< [N_h], E w_i of each point seen, the oldest first
};
SequenceMoments sequence_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                 const Resolution& resolution);

}  // namespace headlab
