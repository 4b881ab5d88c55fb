// SPDX-License-Identifier: Apache-2.0
/// \file Heads as walks to a sink and as diffusions of graphs (arXiv:2507.02944), by powers of
/// matrices that are row-stochastic. The last node is the sink. Sums have positive terms alone.
///
/// Walks go to later nodes where attention rows look at earlier ones. A graph has edges from
/// earlier to later nodes; its diffusion Delta has a self-loop and the in-edges of a node in its
/// row, normalised. Node j's fidelity is phi_j = max over t = 1..horizon of (Delta^t)[sink, j]; the
/// minimax fidelity is the least phi_j.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <Eigen/Core>

namespace headlab {

/// Whether each node has a path to the last along elements (from, to) that are positive.
std::vector<bool> reach_last(const Eigen::MatrixXd& steps);

/// Computes T(eps), the least t >= 0 with max over starts of |e_start P^t - e_sink|_1 < eps, twice
/// the total variation. Throws InvalidInput unless P is row-stochastic within 1e-9 and its sink is
/// absorbing. \return nullopt where t would exceed max_steps, at once where the walk never gets
/// there
std::optional<std::uint64_t> mixing_time(const Eigen::MatrixXd& walk, double eps,
                                         std::uint64_t max_steps = 100000);

/// Edges [from, to], from < to.
using GraphEdges = std::vector<std::pair<int, int>>;

/// Delta [n][n]. Throws InvalidInput for n < 2 or an edge that does not go from an earlier node to
/// a later one.
Eigen::MatrixXd graph_diffusion(int n, const GraphEdges& edges);

/// phi_j for j = 0 to n-2. Throws InvalidInput for horizon < 1 or a matrix that is not
/// row-stochastic.
Eigen::VectorXd sink_fidelities(const Eigen::MatrixXd& diffusion, int horizon);

/// Pairs of different graphs of n nodes of which each reaches the sink, and how many have an
/// average whose minimax fidelity is above, or below, that of both by more than 1e-9.
struct FidelityCount {
  int graphs = 0;
  int pairs = 0;
  int average_above_both = 0;
  int average_below_both = 0;
};

/// Counts them. \param n in [2, 5]: 2^(n (n-1)/2) graphs. Throws InvalidInput otherwise.
FidelityCount fidelity_census(int n, int horizon);

}  // namespace headlab
