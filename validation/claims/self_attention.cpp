// SPDX-License-Identifier: Apache-2.0
// In self-attention the query is one of the keys, and the response at it one of the responses. That
// key gets the largest kernel value, K = 1, from every head: its weight omega is common to all of
// them. Heads on orthogonal subspaces then have, exactly,
//   C = s2 (omega_h omega_l + (1 - omega_h)(1 - omega_l)/(n - 1)),
// so that as omega tends to 1 no diversity decorrelates them.
#include "validation/theory/exact/self_attention.h"

#include <cmath>

#include "engine/scenario/condition.h"
#include "kernels/laws.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/claims/replicate_backend.h"

namespace headlab {
namespace {

/// Puts the first design point where the query is.
void query_is_a_key(std::uint64_t, Plan& plan, TrainingSet& sample) {
  std::copy_n(plan.query_points.begin(), plan.d, sample.x.begin());
  sample.regression.at(0) = plan.truth.at(0);
}

/// |W_h^T x| at the plan's query.
double distance(const Plan& plan, int head) {
  double square = 0;
  for (int j = 0; j < plan.k; ++j) {
    double along = 0;
    for (int i = 0; i < plan.d; ++i) {
      along += plan.projections[static_cast<std::size_t>((head * plan.d + i) * plan.k + j)] *
               plan.query_points[static_cast<std::size_t>(i)];
    }
    square += along * along;
  }
  return std::sqrt(square);
}

std::vector<Finding> has_closed_form(Experiment& experiment) {
  static const ReplicateBackend backend = altered_backend(query_is_a_key);
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan& plan = experiment.plan(i);
    const double sd = std::get<NormalNoise>(*experiment.condition(i).noise).sd;
    const double bandwidth = std::get<GaussianKernel>(*plan.kernel).bandwidth;
    const SelfAttentionHead first =
        self_attention_head(plan.n, plan.k, distance(plan, 0), bandwidth);
    const SelfAttentionHead second =
        self_attention_head(plan.n, plan.k, distance(plan, 1), bandwidth);
    const double covariance =
        sd * sd * self_attention_covariance(plan.n, first.self_weight, second.self_weight);
    const double variance = sd * sd * (first.variance_share + second.variance_share) / 2;
    const JackknifedEstimates& seen =
        experiment.observed("self " + std::to_string(i), plan, backend);
    const std::string at = " at bandwidth " + experiment.condition(i).swept.at(0);
    finding.comparisons.push_back(equal_to("variance" + at + ", relative to its closed form",
                                           seen.head_variance_mean, variance, variance,
                                           experiment.margin(), seen.node_counts));
    finding.comparisons.push_back(equal_to("covariance" + at + ", relative to its closed form",
                                           seen.head_covariance_mean, covariance, covariance,
                                           experiment.margin(), seen.node_counts));
    if (i + 1 == experiment.conditions()) {
      finding.note = "At the smallest bandwidth the self-weights are " +
                     std::to_string(first.self_weight) + " and " +
                     std::to_string(second.self_weight) +
                     ", and the correlation of orthogonal heads is " +
                     std::to_string(covariance / variance) + ".";
    }
  }
  return {std::move(finding)};
}

}  // namespace

Claim self_attention_claim() {
  return {.name = "self_attention",
          .forms = {{.name = "orthogonal heads", .examine = has_closed_form}}};
}

}  // namespace headlab
