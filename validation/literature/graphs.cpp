// SPDX-License-Identifier: Apache-2.0
#include "validation/literature/graphs.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "engine/files/error.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

void require_graph(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("heads as graphs: ") + message);
}

void require_stochastic(const MatrixXd& steps) {
  require_graph(steps.rows() >= 1 && steps.cols() == steps.rows() && steps.allFinite() &&
                    steps.minCoeff() >= 0 &&
                    ((steps.rowwise().sum().array() - 1).abs() <= 1e-9).all(),
                "matrices must be row-stochastic");
}

bool all_reach_last(const MatrixXd& steps) {
  return std::ranges::all_of(reach_last(steps), [](bool is) { return is; });
}

}  // namespace

std::vector<bool> reach_last(const MatrixXd& steps) {
  const Eigen::Index n = steps.rows();
  std::vector<bool> reaches(static_cast<std::size_t>(n), false);
  std::vector<Eigen::Index> todo = {n - 1};
  reaches.back() = true;
  while (!todo.empty()) {
    const Eigen::Index to = todo.back();
    todo.pop_back();
    for (Eigen::Index from = 0; from < n; ++from) {
      const auto at = static_cast<std::size_t>(from);
      if (reaches[at] || !(steps(from, to) > 0)) continue;
      reaches[at] = true;
      todo.push_back(from);
    }
  }
  return reaches;
}

std::optional<std::uint64_t> mixing_time(const MatrixXd& walk, double eps,
                                         std::uint64_t max_steps) {
  require_graph(eps > 0 && eps < 2, "eps must be in (0, 2)");
  require_stochastic(walk);
  const Eigen::Index others = walk.rows() - 1;
  require_graph(walk(others, others) > 0 && walk.row(others).head(others).isZero(0),
                "the last node must be absorbing");
  if (!all_reach_last(walk)) return std::nullopt;
  MatrixXd left = MatrixXd::Identity(others, others);  // probability of being short of the sink
  for (std::uint64_t t = 0; t <= max_steps; ++t) {
    const double distance = others == 0 ? 0 : 2 * left.rowwise().sum().maxCoeff();
    if (distance < eps) return t;
    left = left * walk.topLeftCorner(others, others);
  }
  return std::nullopt;
}

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
  require_stochastic(diffusion);
  require_graph(horizon >= 1, "the horizon must be at least 1");
  const Eigen::Index n = diffusion.rows();
  RowVectorXd at = RowVectorXd::Unit(n, n - 1);
  RowVectorXd largest = RowVectorXd::Zero(n - 1);
  for (int t = 1; t <= horizon; ++t) {
    at = at * diffusion;
    largest = largest.cwiseMax(at.head(n - 1));
  }
  return largest.transpose();
}

FidelityCount fidelity_census(int n, int horizon) {
  require_graph(n >= 2 && n <= 5, "a census is for 2 to 5 nodes");
  constexpr double tie = 1e-9;
  GraphEdges possible;
  for (int to = 1; to < n; ++to) {
    for (int from = 0; from < to; ++from) possible.emplace_back(from, to);
  }
  std::vector<std::pair<MatrixXd, double>> graphs;  // diffusion and minimax fidelity
  FidelityCount count;
  for (unsigned mask = 0; mask < 1U << possible.size(); ++mask) {
    GraphEdges edges;
    for (std::size_t e = 0; e < possible.size(); ++e) {
      if (mask >> e & 1U) edges.push_back(possible[e]);
    }
    const MatrixXd diffusion = graph_diffusion(n, edges);
    if (!all_reach_last(diffusion.transpose())) continue;
    const double own = sink_fidelities(diffusion, horizon).minCoeff();
    for (const auto& [other, of_other] : graphs) {
      const double average = sink_fidelities((diffusion + other) / 2, horizon).minCoeff();
      ++count.pairs;
      count.average_above_both += average - std::max(own, of_other) > tie;
      count.average_below_both += std::min(own, of_other) - average > tie;
    }
    graphs.emplace_back(diffusion, own);
    ++count.graphs;
  }
  return count;
}

}  // namespace headlab
