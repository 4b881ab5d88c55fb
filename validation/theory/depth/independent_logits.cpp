// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/independent_logits.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <Eigen/Core>

#include "engine/files/error.h"
#include "validation/theory/exact/scalar_finite_n.h"

namespace headlab {
namespace {

void require_logits(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("independent logits: ") + message);
}

constexpr Resolution finest = {36, 25000};
constexpr Resolution fine = {26, 25000};  // two dimensions

/// A head on keys N(0, I_2) whose logits are sd times the coordinate along `direction`.
ScalarHead logit_head(const Eigen::Vector2d& direction, double sd) {
  ScalarHead head;
  head.direction = direction;
  head.softmax = true;
  head.rate = sd;
  head.weights = {1};
  head.laws = {{0, 1}};
  return head;
}

/// E sum_j w_hj w_lj = E f_h f_l, with a regression of 0 and noise of variance 1.
double product_moment(int n, double sd, double correlation) {
  TheoryModel model;
  model.n = static_cast<std::uint64_t>(n);
  model.design = {{1.0}, {{Eigen::VectorXd::Zero(2), Eigen::MatrixXd::Identity(2, 2)}}};
  model.zero_regression = true;
  model.noise_sd = 1;
  const Eigen::Vector2d second(correlation, std::sqrt((1 - correlation) * (1 + correlation)));
  const PairMoments moments = scalar_pair_moments(
      model, PairTokens(model, 0, 1), 0, logit_head({1, 0}, sd), logit_head(second, sd), fine);
  require_normalisation(moments.normalisation_error, "two heads with independent logits");
  return moments.product;
}

}  // namespace

WeightMoments softmax_weight_moments(int n, double sd, double correlation) {
  require_logits(n >= 1, "n must be at least 1");
  require_logits(std::isfinite(sd) && sd >= 0, "sd must be finite and not negative");
  require_logits(correlation >= 0 && correlation <= 1, "correlation must be in [0, 1]");
  const double equal = 1.0 / n;
  if (n == 1 || sd == 0) return {equal, equal};
  const ScalarHead head = logit_head({1, 0}, sd);
  const auto keys = static_cast<std::uint64_t>(n);
  const HeadMoments one =
      noise_head_moments(keys, 1, head, sigma_range(head, keys, finest), finest);
  require_normalisation(one.normalisation_error, "a head with independent logits");
  if (correlation == 0) return {one.square, equal};
  if (correlation == 1) return {one.square, one.square};
  return {one.square, product_moment(n, sd, correlation)};
}

double residual_kept(const IndependentLogitsStack& stack) {
  require_logits(stack.heads >= 1, "there must be a head");
  const bool correlated = stack.averaged && stack.heads > 1;
  const WeightMoments w =
      softmax_weight_moments(stack.n, stack.sd, correlated ? stack.correlation : 0);
  const double equal = 1.0 / stack.n;
  if (!stack.averaged) return w.square - equal;
  const double share = 1.0 / stack.heads;
  return share * (w.square - equal) + (1 - share) * (w.product - equal);
}

std::vector<ExpectedEnergies> independent_logits_energies(double residual_squared,
                                                          double mean_squared,
                                                          const IndependentLogitsStack& stack) {
  require_logits(std::isfinite(residual_squared) && residual_squared >= 0 &&
                     std::isfinite(mean_squared) && mean_squared >= 0,
                 "energies of tokens must be finite and not negative");
  require_logits(std::isfinite(stack.value) && stack.value >= 0,
                 "value must be finite and not negative");
  require_logits(std::isfinite(stack.skip) && std::isfinite(stack.branch),
                 "skip and branch must be finite");
  require_logits(stack.layers >= 0, "layers must not be negative");
  const double kept = residual_kept(stack);
  const double keep = stack.skip * stack.skip;
  const double mix = stack.branch * stack.branch * stack.value;
  const double log_residual_factor = std::log(keep + mix * kept);
  const double pairs = stack.n * (stack.n - 1.0);

  std::vector<ExpectedEnergies> layers = {
      {std::log(residual_squared), std::log(mean_squared), stack.n}};
  for (int l = 1; l <= stack.layers; ++l) {
    ExpectedEnergies next = layers.back();
    // Everything at the larger of the two scales; both are -infinity where X = 0.
    const double scale = std::max(next.log_mean_squared, next.log_residual_squared);
    if (std::isfinite(scale)) {
      double mean = (keep + mix) * std::exp(next.log_mean_squared - scale);
      if (stack.n > 1) mean += mix * kept / pairs * std::exp(next.log_residual_squared - scale);
      next.log_mean_squared = scale + std::log(mean);
      next.log_residual_squared += log_residual_factor;
    }
    layers.push_back(next);
  }
  return layers;
}

}  // namespace headlab
