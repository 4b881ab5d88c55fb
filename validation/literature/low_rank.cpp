// SPDX-License-Identifier: Apache-2.0
// Scores of heads of lower rank.
//
// With keys X and queries x of one covariance S, M = W_Q W_K^T before and M' after a compression,
// the squared score error is E (x^T (M - M') X)^2 = |S^1/2 (M - M') S^1/2|_F^2. By Eckart and Young
// (1936) no M' of rank R is closer than the singular values of S^1/2 M S^1/2 beyond the R-th.
#include <utility>

#include <Eigen/Core>

#include "engine/scenario/condition.h"
#include "kernels/decompositions.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// S^1/2 W_Q W_K^T S^1/2 of a head, with the Cholesky factor of S for S^1/2: E (x^T M X)^2 is its
/// squared Frobenius norm.
Eigen::MatrixXd scores_of(const Plan& plan, int head, const Eigen::MatrixXd& factor) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto size = static_cast<std::size_t>(plan.d) * static_cast<std::size_t>(plan.k);
  const Eigen::Map<const RowMajor> keys(&plan.projections[static_cast<std::size_t>(head) * size],
                                        plan.d, plan.k);
  const Eigen::Map<const RowMajor> queries(plan.query_projection(head), plan.d, plan.k);
  return factor.transpose() * queries * keys.transpose() * factor;
}

Eigen::MatrixXd factor_of(const Condition& condition) {
  const auto& law = std::get<NormalDesign>(*condition.design);
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Identity(law.dim, law.dim);
  for (std::size_t i = 0; i < law.covariance.size(); ++i) {
    for (std::size_t j = 0; j < law.covariance.size(); ++j) {
      covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = law.covariance[i][j];
    }
  }
  return Cholesky(covariance).lower();
}

/// Head 0 of each condition has full rank, head 1 the rank and method of the condition. The first
/// condition is of KQ-SVD.
std::vector<Finding> has_least_score_error(Experiment& experiment) {
  Finding finding{.identity = true};
  double least = 0;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    Plan plan = experiment.plan(i);
    experiment.add_fault(plan);
    const Eigen::MatrixXd factor = factor_of(experiment.condition(i));
    const Eigen::MatrixXd scores = scores_of(plan, 0, factor);
    const Eigen::MatrixXd compressed = scores_of(plan, 1, factor);
    const double error = (scores - compressed).squaredNorm() / scores.squaredNorm();
    if (i == 0) {
      const Eigen::VectorXd kept = singular_values(compressed);
      const auto rank = (kept.array() > 1e-9 * kept(0)).count();
      const Eigen::VectorXd values = singular_values(scores);
      least = values.tail(values.size() - rank).squaredNorm() / scores.squaredNorm();
      finding.comparisons.push_back(equal_to(
          "squared score error of KQ-SVD minus that of the singular values left out, relative",
          Jackknifed(error), least, 1, experiment.margin(), {}));
    } else {
      finding.comparisons.push_back(
          at_least_zero("squared score error of " + experiment.condition(i).swept.at(0) +
                            " minus the least, relative",
                        Jackknifed(error - least), 1, experiment.margin(), {}));
    }
  }
  return {std::move(finding)};
}

}  // namespace

Claim low_rank_claim() {
  return {.name = "low_rank", .forms = {{.name = "scores", .examine = has_least_score_error}}};
}

}  // namespace headlab
