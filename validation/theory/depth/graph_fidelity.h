// SPDX-License-Identifier: Apache-2.0
/// \file Fidelity of a graph at its sink (arXiv:2507.02944).
///
/// A graph has nodes 0 to n-1, the last the sink, and edges from earlier to later nodes. Its
/// diffusion Delta has a self-loop and the in-edges of a node in its row, normalised. Node j's
/// fidelity is phi_j = max over t = 1..horizon of (Delta^t)[sink, j]; the minimax fidelity is the
/// least phi_j.
#pragma once

#include <utility>
#include <vector>

#include <Eigen/Core>

namespace headlab {

/// Edges [from, to], from < to.
using GraphEdges = std::vector<std::pair<int, int>>;

/// Delta [n][n]. Throws InvalidInput for n < 2 or an edge that does not go from an earlier node to
/// a later one.
Eigen::MatrixXd graph_diffusion(int n, const GraphEdges& edges);

/// phi_j for j = 0 to n-2. Throws InvalidInput for horizon < 1 or a matrix that is not
/// row-stochastic.
Eigen::VectorXd sink_fidelities(const Eigen::MatrixXd& diffusion, int horizon);

/// Whether node j = 0 to n-2 has a path to the sink in the union of the graphs: phi_j of their
/// average is positive for these nodes alone, at horizon >= n. Throws as graph_diffusion.
std::vector<bool> reach_sink(int n, const std::vector<GraphEdges>& graphs);

/// The minimax fidelity of a line of n nodes, C(2k, k)/4^k with k = n - 2, at horizon >= 2k. Throws
/// InvalidInput for n < 2.
double line_minimax_fidelity(int n);

/// Pairs of different graphs of a class, and how many have an average whose minimax fidelity is
/// above, or below, that of both.
struct FidelityCount {
  int graphs = 0;
  int pairs = 0;
  int average_above_both = 0;
  int average_below_both = 0;
};

/// All graphs of n nodes, and classes of them.
struct FidelityCensus {
  FidelityCount all;
  FidelityCount has_earlier_neighbour;  ///< every node but the first
  FidelityCount reaches_sink;           ///< every node
  FidelityCount both;
  /// Fidelities are equal within 1e-9: the largest difference that counts as none, and the smallest
  /// that counts.
  double largest_tie = 0;
  double smallest_difference = 1;
};

/// Computes it. \param n in [2, 5]: 2^(n (n-1)/2) graphs. Throws InvalidInput otherwise.
FidelityCensus fidelity_census(int n, int horizon);

}  // namespace headlab
