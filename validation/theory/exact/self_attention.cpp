// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/self_attention.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Core>

#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/exact/scalar_tables.h"

namespace headlab {
namespace {

constexpr Resolution fixed_resolution = {30, 25000};

ScalarHead standard_head(int k, double distance, double bandwidth) {
  ScalarHead head = radial_head(k, distance, bandwidth);
  if (k == 1) {
    head.centre = distance;
    head.laws = {{0, 1}};
  }
  return head;
}

}  // namespace

SelfAttentionHead self_attention_head(std::uint64_t n, int k, double distance, double bandwidth) {
  if (n == 1) return {1, 1, 0};
  const ScalarHead head = standard_head(k, distance, bandwidth);
  const SigmaRange others = sigma_range(head, n - 1, fixed_resolution);
  // The own key ends every integral at s = digits + 10.
  SigmaRange range = others;
  range.from = std::min(others.from, -fixed_resolution.digits - 7);
  range.to = std::log(fixed_resolution.digits + 10);
  range.knee = std::min(others.knee, -5.0);
  const double unit = panel_width(fixed_resolution.digits);
  const Nodes sigma = panel_nodes(range.from, range.to, {range.knee},
                                  [&](double at) { return at < range.knee ? 3 * unit : unit; });
  const DesignNodes design = noise_nodes(head, others, 1, fixed_resolution).at(0);
  const KernelTable table = kernel_table(design.level, sigma.points);

  // Everything is in d sigma = ds/s.
  const double count = static_cast<double>(n - 1);
  const Eigen::ArrayXd s = sigma.points.exp();
  const Eigen::ArrayXd fall = (table.fall.transpose() * design.probability).array();
  const Eigen::ArrayXd first = (table.first.transpose() * design.probability).array();
  Eigen::ArrayXd second(s.size());
  for (Eigen::Index j = 0; j < s.size(); ++j) {
    second(j) = (design.probability.array() * (sigma.points(j) - design.level).exp() *
                 table.first.col(j).array())
                    .sum();
  }
  const Eigen::ArrayXd own = sigma.weights * (-s).exp() * power_of_phi(fall, count).col(0);
  const Eigen::ArrayXd rest = sigma.weights * (-s).exp() * power_of_phi(fall, count - 1).col(0);
  SelfAttentionHead result;
  result.self_weight = (own * s).sum();
  result.variance_share = (own * s * s).sum() + count * (rest * second).sum();
  result.normalisation_error = result.self_weight + count * (rest * first).sum() - 1;
  require_normalisation(result.normalisation_error, "the self-weight");
  return result;
}

double self_attention_covariance(std::uint64_t n, double self_weight_h, double self_weight_l) {
  if (n == 1) return 1;
  return self_weight_h * self_weight_l +
         (1 - self_weight_h) * (1 - self_weight_l) / static_cast<double>(n - 1);
}

}  // namespace headlab
