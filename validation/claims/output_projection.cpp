// SPDX-License-Identifier: Apache-2.0
// Multi-head attention does not average its heads, it projects them: out = sum_h A_h f_h with
// A_h = W_O^h W_V^h. Then
//   E|out - g|^2 = |sum_h A_h E f_h - g|^2 + sum_hl tr(A_h Cov(f_h, f_l) A_l^T),
// and the correlation of heads matters only as far as their A_h write to the same outputs.
#include <Eigen/Core>

#include "kernels/plan.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// E|out - g|^2 of a condition, g = (m, ..., m): one simulated ensemble for each row of A [o][H].
Jackknifed simulated(Experiment& experiment, std::size_t condition, const Eigen::MatrixXd& a) {
  Jackknifed sum = 0;
  for (Eigen::Index o = 0; o < a.rows(); ++o) {
    Plan plan = experiment.plan(condition);
    plan.moments = MomentMode::aggregate;
    for (Eigen::Index h = 0; h < a.cols(); ++h) {
      plan.head_weights[static_cast<std::size_t>(h)] = a(o, h);
    }
    sum = sum +
          experiment
              .observed("condition " + std::to_string(condition) + ", output " + std::to_string(o),
                        plan)
              .mse;
  }
  return sum;
}

/// Two outputs that mix three heads, with biases and correlations of all signs.
std::vector<Finding> formula(Experiment& experiment) {
  Eigen::MatrixXd a(2, 3);
  a << 0.5, 0.3, 0.4, 0.6, -0.2, 0.3;
  const auto& query = experiment.theory(0).figures.queries.at(0);
  const double truth = experiment.plan().truth.at(0);
  Eigen::VectorXd mean(3);
  Eigen::MatrixXd covariance(3, 3);
  for (Eigen::Index h = 0; h < 3; ++h) {
    mean(h) = truth + query.head_bias.at(static_cast<std::size_t>(h)).value;
    for (Eigen::Index l = 0; l < 3; ++l) {
      covariance(h, l) = query.head_covariance.at(static_cast<std::size_t>(3 * h + l)).value;
    }
  }
  const double closed = (a * mean - Eigen::VectorXd::Constant(2, truth)).squaredNorm() +
                        (a * covariance).cwiseProduct(a).sum();
  Finding finding;
  finding.comparisons.push_back(equal_to("E|out - g|^2, relative to its closed form",
                                         simulated(experiment, 0, a), closed, closed,
                                         experiment.margin(), experiment.observed(0).node_counts));
  return {std::move(finding)};
}

/// Condition 0 has aligned heads, condition 1 orthogonal ones; A is the same.
std::vector<Finding> correlation_is_irrelevant(Experiment& experiment, const Eigen::MatrixXd& a) {
  const Jackknifed aligned = simulated(experiment, 0, a);
  const Jackknifed orthogonal = simulated(experiment, 1, a);
  Finding finding;
  finding.comparisons.push_back(equal_to("error of aligned over that of orthogonal heads minus 1",
                                         aligned / orthogonal, 1, 1, experiment.margin(),
                                         experiment.observed(0).node_counts));
  return {std::move(finding)};
}

std::vector<Finding> own_outputs(Experiment& experiment) {
  const Eigen::Index heads = experiment.plan().heads;
  return correlation_is_irrelevant(experiment, Eigen::MatrixXd::Identity(heads, heads));
}

std::vector<Finding> shared_outputs(Experiment& experiment) {
  const Eigen::Index heads = experiment.plan().heads;
  return correlation_is_irrelevant(
      experiment, Eigen::MatrixXd::Constant(heads, heads, 1 / static_cast<double>(heads)));
}

}  // namespace

Claim output_projection_claim() {
  return {.name = "output_projection",
          .forms = {{.name = "formula", .examine = formula},
                    {.name = "own outputs", .examine = own_outputs},
                    {.name = "shared outputs", .examine = shared_outputs}}};
}

}  // namespace headlab
