// SPDX-License-Identifier: Apache-2.0
// Retrieval of one of N patterns by a row of attention: the weight of the pattern that is the
// query.
#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/scenario/condition.h"
#include "kernels/plan.h"
#include "kernels/stack/worker.h"
#include "validation/claims/claim.h"
#include "validation/literature/stack_examples.h"
#include "validation/theory/exact/self_attention.h"

namespace headlab {
namespace {

double beta_of(const Stack& stack) {
  return std::get<ExplicitMaps>(stack.maps).query_key.at(0)(0, 0) / stack.temperature;
}

/// Mean over patterns of the weight of one that is the query, moved to squared length q before.
double own_weight(const Eigen::MatrixXd& patterns, double beta, double q) {
  Eigen::MatrixXd logits =
      beta * std::sqrt(q) * patterns.rowwise().normalized() * patterns.transpose();
  logits.diagonal().setConstant(beta * q);
  logits.colwise() -= logits.rowwise().maxCoeff().eval();
  const Eigen::ArrayXXd weights = logits.array().exp();
  return (logits.diagonal().array().exp() / weights.rowwise().sum()).mean();
}

double mean_weight(const std::vector<double>& values) {
  double sum = 0;
  for (const double one : values) sum += one;
  return sum / static_cast<double>(values.size());
}

std::vector<Finding> has_own_weight(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan plan = faulty_plan(experiment, i);
    const double q = plan.d;
    std::vector<double> weights;
    for (std::uint64_t r = 0; r < experiment.replicates(); ++r) {
      weights.push_back(own_weight(stack_tokens(plan, r), beta_of(*plan.stack), q));
    }
    const Plan& known = experiment.plan(i);
    const double beta = beta_of(*known.stack);
    const SelfAttentionHead exact = retrieval_head(known.n, beta, known.d);
    finding.comparisons.push_back(
        equal_to("weight of the query's pattern at beta = " + experiment.condition(i).swept.at(0),
                 jackknifed(weights, mean_weight), exact.self_weight, 1, experiment.margin(),
                 part_counts(weights.size()), std::abs(exact.normalisation_error)));
  }
  return {std::move(finding)};
}

}  // namespace

Claim retrieval_claim() {
  return {.name = "retrieval", .forms = {{.name = "own weight", .examine = has_own_weight}}};
}

}  // namespace headlab
