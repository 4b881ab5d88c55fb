// SPDX-License-Identifier: Apache-2.0
// Attention is Nadaraya-Watson regression: softmax weights exp(q.k_i/t) are those of the Gaussian
// kernel with b^2 = t exactly when all projected keys are equally long, since
//   q.k/t = -|q - k|^2/(2t) + |k|^2/(2t) + |q|^2/(2t)
// and then the last two terms are the same for every key. With keys of other lengths the weights
// are those of the Gaussian kernel with prior exp(|k_i|^2/(2t)) on key i.
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// The same heads and draws with the Gaussian kernel of b^2 = t in place of softmax.
Plan gaussian_twin(const Plan& softmax) {
  Plan twin = softmax;
  const double t = std::get<SoftmaxKernel>(*softmax.kernel).temperature;
  twin.kernel = GaussianKernel{.bandwidth = std::sqrt(t)};
  return twin;
}

std::vector<Finding> same_estimates(Experiment& experiment) {
  const JackknifedEstimates& softmax = experiment.observed();
  const JackknifedEstimates& gaussian =
      experiment.observed("gaussian", gaussian_twin(experiment.plan()));
  Finding finding;
  for (std::size_t q = 0; q < softmax.queries.size(); ++q) {
    for (std::size_t h = 0; h < softmax.queries[q].head_bias.size(); ++h) {
      const Jackknifed difference =
          softmax.queries[q].head_bias[h] - gaussian.queries[q].head_bias[h];
      finding.comparisons.push_back(equal_to("E f of head " + std::to_string(h) + " at query " +
                                                 std::to_string(q) + ", softmax minus Gaussian",
                                             difference, 0, 1, experiment.margin(),
                                             experiment.node_counts()));
    }
  }
  return {std::move(finding)};
}

/// With keys of equal length after projection only rounding is at stake.
std::vector<Finding> equal_norms(Experiment& experiment) {
  std::vector<Finding> findings = same_estimates(experiment);
  findings[0].identity = true;
  return findings;
}

}  // namespace

Claim identity_claim() {
  return {.name = "identity",
          .forms = {{.name = "equal norms", .examine = equal_norms},
                    {.name = "unequal norms", .examine = same_estimates}}};
}

}  // namespace headlab
