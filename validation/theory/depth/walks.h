// SPDX-License-Identifier: Apache-2.0
/// \file Heads as random walks to a sink (arXiv:2507.02944), by powers of their matrices.
///
/// A walk is a row-stochastic matrix P [n][n] whose last node, the sink, is absorbing. Walks go to
/// later nodes where attention rows look at earlier ones; in a product the first factor is the
/// first step. Sums have positive terms alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <Eigen/Core>

#include "kernels/matrices.h"

namespace headlab {

/// Throws InvalidInput, as all functions of this file do, unless rows are not negative and sum to
/// one within 1e-9 and the last node is absorbing.
void require_walk(const Eigen::MatrixXd& walk);

/// Computes sum_h weight_h P_h. Throws InvalidInput unless weights are not negative and sum to one
/// within 1e-9. \param weights [H]; empty: 1/H
Eigen::MatrixXd averaged_walk(const Matrices& walks, const std::vector<double>& weights = {});

/// Computes T(eps), the least t >= 0 with max over starts of |e_start P_1 P_2 .. P_t - e_sink|_1 <
/// eps, twice the total variation, where the walks take turns, first the first. One walk: powers.
/// \return nullopt where t would exceed max_steps, at once where no walk ever gets there
std::optional<std::uint64_t> mixing_time(const Matrices& walks, double eps,
                                         std::uint64_t max_steps = 100000);

/// Computes the largest over starts of the expected time to the sink, by elimination of states
/// (Grassmann, Taksar and Heyman, Operations Research 33, 1985); infinite where a node does not
/// reach the sink.
double largest_hitting_time(const Eigen::MatrixXd& walk);

}  // namespace headlab
