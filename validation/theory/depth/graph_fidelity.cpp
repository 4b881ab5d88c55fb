// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/graph_fidelity.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "engine/files/error.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

void require_graph(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("fidelity: ") + message);
}

/// One graph of the census.
struct CountedGraph {
  MatrixXd diffusion;
  double minimax = 0;
  bool has_earlier_neighbour = true;
  bool reaches_sink = true;
};

}  // namespace

MatrixXd graph_diffusion(int n, const GraphEdges& edges) {
  require_graph(n >= 2, "a graph needs two nodes");
  MatrixXd diffusion = MatrixXd::Identity(n, n);
  for (const auto& [from, to] : edges) {
    require_graph(from >= 0 && from < to && to < n, "edges must go from earlier to later nodes");
    diffusion(to, from) = 1;
  }
  diffusion.array().colwise() /= diffusion.rowwise().sum().array().eval();
  return diffusion;
}

VectorXd sink_fidelities(const MatrixXd& diffusion, int horizon) {
  const Eigen::Index n = diffusion.rows();
  require_graph(n >= 2 && diffusion.cols() == n && diffusion.allFinite() &&
                    diffusion.minCoeff() >= 0 &&
                    ((diffusion.rowwise().sum().array() - 1).abs() <= 1e-9).all(),
                "the diffusion must be row-stochastic");
  require_graph(horizon >= 1, "the horizon must be at least 1");
  RowVectorXd at = RowVectorXd::Unit(n, n - 1);
  RowVectorXd largest = RowVectorXd::Zero(n - 1);
  for (int t = 1; t <= horizon; ++t) {
    at = at * diffusion;
    largest = largest.cwiseMax(at.head(n - 1));
  }
  return largest.transpose();
}

std::vector<bool> reach_sink(int n, const std::vector<GraphEdges>& graphs) {
  require_graph(n >= 2, "a graph needs two nodes");
  std::vector<bool> reaches(static_cast<std::size_t>(n), false);
  MatrixXd joined = MatrixXd::Zero(n, n);
  for (const GraphEdges& edges : graphs) joined += graph_diffusion(n, edges);
  reaches.back() = true;
  // Edges go to later nodes, so that one pass from the sink down sees every path.
  for (int j = n - 2; j >= 0; --j) {
    for (int to = j + 1; to < n; ++to) {
      if (joined(to, j) > 0 && reaches[static_cast<std::size_t>(to)]) {
        reaches[static_cast<std::size_t>(j)] = true;
      }
    }
  }
  reaches.pop_back();
  return reaches;
}

double line_minimax_fidelity(int n) {
  require_graph(n >= 2, "a graph needs two nodes");
  double product = 1;
  for (int k = 1; k <= n - 2; ++k) product *= (2 * k - 1) / (2.0 * k);
  return product;
}

FidelityCensus fidelity_census(int n, int horizon) {
  require_graph(n >= 2 && n <= 5, "a census is for 2 to 5 nodes");
  constexpr double tie = 1e-9;
  GraphEdges possible;
  for (int to = 1; to < n; ++to) {
    for (int from = 0; from < to; ++from) possible.emplace_back(from, to);
  }
  std::vector<CountedGraph> graphs;
  for (unsigned mask = 0; mask < 1U << possible.size(); ++mask) {
    GraphEdges edges;
    for (std::size_t e = 0; e < possible.size(); ++e) {
      if (mask >> e & 1U) edges.push_back(possible[e]);
    }
    CountedGraph graph;
    graph.diffusion = graph_diffusion(n, edges);
    graph.minimax = sink_fidelities(graph.diffusion, horizon).minCoeff();
    for (int to = 1; to < n; ++to) graph.has_earlier_neighbour &= graph.diffusion(to, to) < 1;
    for (const bool reaches : reach_sink(n, {edges})) graph.reaches_sink &= reaches;
    graphs.push_back(std::move(graph));
  }

  FidelityCensus census;
  const auto add = [&](bool one_earlier, bool one_reaches, const auto& change) {
    change(census.all);
    if (one_earlier) change(census.has_earlier_neighbour);
    if (one_reaches) change(census.reaches_sink);
    if (one_earlier && one_reaches) change(census.both);
  };
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const CountedGraph& a = graphs[g];
    add(a.has_earlier_neighbour, a.reaches_sink, [](FidelityCount& c) { ++c.graphs; });
    for (std::size_t other = 0; other < g; ++other) {
      const CountedGraph& b = graphs[other];
      const double average = sink_fidelities((a.diffusion + b.diffusion) / 2, horizon).minCoeff();
      const double above = average - std::max(a.minimax, b.minimax);
      const double below = std::min(a.minimax, b.minimax) - average;
      for (const double difference : {std::abs(above), std::abs(below)}) {
        if (difference <= tie) {
          census.largest_tie = std::max(census.largest_tie, difference);
        } else {
          census.smallest_difference = std::min(census.smallest_difference, difference);
        }
      }
      add(a.has_earlier_neighbour && b.has_earlier_neighbour, a.reaches_sink && b.reaches_sink,
          [&](FidelityCount& c) {
            ++c.pairs;
            c.average_above_both += above > tie;
            c.average_below_both += below > tie;
          });
    }
  }
  return census;
}

}  // namespace headlab
