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

/// A head with `others` keys besides that of the query, whose kernel value is exp(own_log).
SelfAttentionHead head_with_own_key(const ScalarHead& head, std::uint64_t others, double own_log) {
  const SigmaRange range = sigma_range(head, others, fixed_resolution);
  // The own key ends every integral where s times its kernel value is digits + 10.
  const double from = std::min(range.from, -fixed_resolution.digits - 7 - own_log);
  const double to = std::log(fixed_resolution.digits + 10) - own_log;
  const double knee = std::min(range.knee, -5.0 - own_log);
  const double unit = panel_width(fixed_resolution.digits);
  const Nodes sigma =
      panel_nodes(from, to, {knee}, [&](double at) { return at < knee ? 3 * unit : unit; });
  const DesignNodes design = noise_nodes(head, range, 1, fixed_resolution).at(0);
  const KernelTable table = kernel_table(design.level, sigma.points);

  // Everything is in d sigma = ds/s, with u = s exp(own_log).
  const double count = static_cast<double>(others);
  const Eigen::ArrayXd u = (sigma.points + own_log).exp();
  const Eigen::ArrayXd fall = (table.fall.transpose() * design.probability).array();
  const Eigen::ArrayXd first = (table.first.transpose() * design.probability).array();
  Eigen::ArrayXd second(u.size());
  for (Eigen::Index j = 0; j < u.size(); ++j) {
    second(j) = (design.probability.array() * (sigma.points(j) - design.level).exp() *
                 table.first.col(j).array())
                    .sum();
  }
  const Eigen::ArrayXd own = sigma.weights * (-u).exp() * power_of_phi(fall, count).col(0);
  const Eigen::ArrayXd rest = sigma.weights * (-u).exp() * power_of_phi(fall, count - 1).col(0);
  SelfAttentionHead result;
  result.self_weight = (own * u).sum();
  result.variance_share = (own * u * u).sum() + count * (rest * second).sum();
  result.normalisation_error = result.self_weight + count * (rest * first).sum() - 1;
  require_normalisation(result.normalisation_error, "the self-weight");
  return result;
}

}  // namespace

SelfAttentionHead self_attention_head(std::uint64_t n, int k, double distance, double bandwidth) {
  if (n == 1) return {1, 1, 0};
  ScalarHead head = radial_head(k, distance, bandwidth);
  if (k == 1) {
    head.centre = distance;
    head.laws = {{0, 1}};
  }
  return head_with_own_key(head, n - 1, 0);
}

SelfAttentionHead retrieval_head(std::uint64_t patterns, double beta, double query_squared) {
  if (patterns == 1) return {1, 1, 0};
  const double equal = 1.0 / static_cast<double>(patterns);
  if (beta * query_squared == 0) return {equal, equal, 0};
  ScalarHead head;
  head.softmax = true;
  head.rate = beta * std::sqrt(query_squared);
  head.weights = {1};
  head.laws = {{0, 1}};
  return head_with_own_key(head, patterns - 1, beta * query_squared);
}

double self_attention_covariance(std::uint64_t n, double self_weight_h, double self_weight_l) {
  if (n == 1) return 1;
  return self_weight_h * self_weight_l +
         (1 - self_weight_h) * (1 - self_weight_l) / static_cast<double>(n - 1);
}

}  // namespace headlab
