// SPDX-License-Identifier: Apache-2.0
#include "validation/literature/stack_examples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/files/error.h"
#include "kernels/plan.h"
#include "kernels/stack/maps.h"
#include "validation/theory/model/panels.h"

namespace headlab {

Plan faulty_plan(const Experiment& experiment, std::size_t condition) {
  Plan plan = experiment.plan(condition);
  experiment.add_fault(plan);
  return plan;
}

Eigen::MatrixXd query_key_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                              Eigen::Index d) {
  LayerMaps maps;
  draw_maps(stack, draws, layer, {.first = head}, {.first = head}, d, maps);
  const Eigen::MatrixXd map = stack.temperature * maps.query;
  return maps.key.size() == 0 ? map : Eigen::MatrixXd(map * maps.key.transpose());
}

Eigen::MatrixXd value_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                          Eigen::Index d) {
  LayerMaps maps;
  draw_maps(stack, draws, layer, {.first = head, .count = 0}, {.first = head}, d, maps);
  return maps.value.size() == 0 ? Eigen::MatrixXd(maps.output)
                                : Eigen::MatrixXd(maps.value * maps.output);
}

IntegerMatrix thousandths(const Eigen::MatrixXd& matrix) {
  return (1000 * matrix).array().round().matrix().cast<std::int64_t>();
}

Jackknifed jackknifed(const std::vector<double>& values,
                      const std::function<double(std::vector<double>)>& statistic) {
  Jackknifed out(statistic(values));
  const auto size = static_cast<std::ptrdiff_t>(values.size() / sample_parts);
  for (std::size_t part = 0; part < sample_parts; ++part) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(part) * size;
    std::vector<double> rest(values.begin(), from);
    rest.insert(rest.end(), from + size, values.end());
    out.leave_one_out.push_back(statistic(std::move(rest)));
  }
  return out;
}

std::vector<double> part_counts(std::size_t values) {
  return std::vector<double>(sample_parts, static_cast<double>(values / sample_parts));
}

namespace {

void require_subsets(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("subset sums: ") + message);
}

/// Density at y of the sum of k uniforms on (0, 1), a B-spline, by de Boor's recursion: sums of
/// positive terms.
double uniform_sum_density(int k, double y) {
  std::vector<double> density(static_cast<std::size_t>(k));  // of r uniforms, at y - j
  for (int j = 0; j < k; ++j) density[static_cast<std::size_t>(j)] = y >= j && y < j + 1 ? 1 : 0;
  for (int r = 2; r <= k; ++r) {
    for (int j = 0; j + r <= k; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const double x = y - j;
      density[at] = (x * density[at] + (r - x) * density[at + 1]) / (r - 1);
    }
  }
  return density[0];
}

/// P(|S - z| <= eps), S the sum of k uniforms on (-1, 1), exact but for rounding: the density is a
/// polynomial of degree k - 1 between integers.
double uniform_sum_hit(int k, double target, double eps) {
  const double from = std::max((target - eps + k) / 2, 0.0);
  const double to = std::min((target + eps + k) / 2, static_cast<double>(k));
  if (from >= to) return 0;
  std::vector<double> knots;
  for (int j = 1; j < k; ++j) knots.push_back(j);
  const Nodes nodes =
      panel_nodes(from, to, knots, [](double) { return std::numeric_limits<double>::infinity(); });
  double sum = 0;
  for (Eigen::Index i = 0; i < nodes.points.size(); ++i) {
    sum += nodes.weights(i) * uniform_sum_density(k, nodes.points(i));
  }
  return sum;
}

}  // namespace

double expected_subset_hits(int count, double target, double eps) {
  require_subsets(count >= 0 && count <= 30, "the number of samples must be in [0, 30]");
  require_subsets(std::isfinite(target), "the target must be finite");
  require_subsets(std::isfinite(eps) && eps > 0, "eps must be finite and positive");
  double hits = std::abs(target) <= eps ? 1 : 0;
  double subsets = 1;
  for (int k = 1; k <= count; ++k) {
    subsets = subsets * (count - k + 1) / k;
    hits += subsets * uniform_sum_hit(k, target, eps);
  }
  return hits;
}

}  // namespace headlab
