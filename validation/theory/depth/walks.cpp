// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/walks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "engine/files/error.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

void require_walks(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("walks: ") + message);
}

/// Whether every node reaches the sink along steps of positive probability.
bool all_reach_sink(const MatrixXd& walk) {
  const Eigen::Index n = walk.rows();
  std::vector<bool> reaches(static_cast<std::size_t>(n), false);
  std::vector<Eigen::Index> todo = {n - 1};
  reaches.back() = true;
  while (!todo.empty()) {
    const Eigen::Index to = todo.back();
    todo.pop_back();
    for (Eigen::Index from = 0; from < n; ++from) {
      const auto at = static_cast<std::size_t>(from);
      if (reaches[at] || !(walk(from, to) > 0)) continue;
      reaches[at] = true;
      todo.push_back(from);
    }
  }
  return std::ranges::all_of(reaches, [](bool is) { return is; });
}

void require_eps(double eps) {
  require_walks(eps > 0 && eps < 2, "eps must be in (0, 2)");
}

}  // namespace

void require_walk(const MatrixXd& walk) {
  const Eigen::Index n = walk.rows();
  require_walks(n >= 1 && walk.cols() == n, "a walk must be a square matrix");
  require_walks(walk.allFinite() && walk.minCoeff() >= 0 &&
                    ((walk.rowwise().sum().array() - 1).abs() <= 1e-9).all(),
                "rows must not be negative and must sum to one");
  require_walks(walk(n - 1, n - 1) > 0 && walk.row(n - 1).head(n - 1).isZero(0),
                "the last node must be absorbing");
}

MatrixXd averaged_walk(const Matrices& walks, const std::vector<double>& weights) {
  require_walks(!walks.empty() && (weights.empty() || weights.size() == walks.size()),
                "every walk needs a weight");
  double total = 0;
  MatrixXd sum = MatrixXd::Zero(walks[0].rows(), walks[0].cols());
  for (std::size_t h = 0; h < walks.size(); ++h) {
    require_walk(walks[h]);
    require_walks(walks[h].rows() == sum.rows(), "walks must have the same nodes");
    const double weight = weights.empty() ? 1.0 / static_cast<double>(walks.size()) : weights[h];
    require_walks(weight >= 0, "weights must not be negative");
    sum += weight * walks[h];
    total += weight;
  }
  require_walks(std::abs(total - 1) <= 1e-9, "weights must sum to one");
  return sum;
}

std::optional<std::uint64_t> mixing_time(const Matrices& walks, double eps,
                                         std::uint64_t max_steps) {
  require_eps(eps);
  const MatrixXd average = averaged_walk(walks);
  // A turn of each that never leaves a set is a set that no walk leaves.
  if (!all_reach_sink(average)) return std::nullopt;
  const Eigen::Index others = average.rows() - 1;
  MatrixXd left = MatrixXd::Identity(others, others);  // probability of being short of the sink
  for (std::uint64_t t = 0; t <= max_steps; ++t) {
    const double distance = others == 0 ? 0 : 2 * left.rowwise().sum().maxCoeff();
    if (distance < eps) return t;
    left = left * walks[static_cast<std::size_t>(t % walks.size())].topLeftCorner(others, others);
  }
  return std::nullopt;
}

double largest_hitting_time(const MatrixXd& walk) {
  require_walk(walk);
  if (!all_reach_sink(walk)) return std::numeric_limits<double>::infinity();
  const Eigen::Index n = walk.rows();
  MatrixXd p = walk;
  VectorXd time = VectorXd::Ones(n - 1);  // expected, to the next state that is left
  for (Eigen::Index k = 0; k + 1 < n; ++k) {
    // Leaving k, which no sum of rounded terms close to one decides.
    const Eigen::Index later = n - 1 - k;
    const double leaves = p.row(k).tail(later).sum();
    p.row(k).tail(later) /= leaves;
    time(k) /= leaves;
    for (Eigen::Index i = k + 1; i + 1 < n; ++i) {
      time(i) += p(i, k) * time(k);
      p.row(i).tail(later) += p(i, k) * p.row(k).tail(later);
    }
  }
  // p(k, j), j > k, is now the law of the first state after k that is later.
  for (Eigen::Index k = n - 1; k-- > 0;) {
    time(k) += p.row(k).segment(k + 1, n - 2 - k).dot(time.tail(n - 2 - k));
  }
  return n == 1 ? 0 : time.maxCoeff();
}

}  // namespace headlab
