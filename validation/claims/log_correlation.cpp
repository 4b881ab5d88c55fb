// SPDX-License-Identifier: Apache-2.0
// Softmax heads with tilts a_h = P_h x/t and keys N(0, I) have noise correlation
//   rho_hl = exp(-|a_h - a_l|^2/2)
// to leading order. Averaged over queries x ~ N(0, I) and pairs of frames,
//   E log rho = -(k/t^2) HDI_chordal, which is -HDI_chordal at t = sqrt(d_k):
// at the temperature of Transformers the chordal index is the mean log correlation, and orthogonal
// heads keep a geometric-mean correlation of 1/e.

#include "engine/scenario/subspaces.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/diversity/indices.h"

namespace headlab {
namespace {

/// -|a_h - a_l|^2/2 at query q.
double log_correlation(const Plan& plan, const std::vector<Eigen::MatrixXd>& frames, double t,
                       std::size_t q, std::size_t h, std::size_t l) {
  const Eigen::Map<const Eigen::VectorXd> x(
      plan.query_points.data() + q * static_cast<std::size_t>(plan.d), plan.d);
  const Eigen::VectorXd a = frames[h] * (frames[h].transpose() * x) / t;
  const Eigen::VectorXd b = frames[l] * (frames[l].transpose() * x) / t;
  return -0.5 * (a - b).squaredNorm();
}

std::vector<Finding> is_minus_chordal(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan& plan = experiment.plan(i);
    const auto frames = subspace_bases(experiment.condition(i));
    const double t = std::get<SoftmaxKernel>(*plan.kernel).temperature;
    const double chordal = chordal_index(frames).value.value();
    const double mean_over_queries = -plan.k / (t * t) * chordal;
    const JackknifedEstimates& seen = experiment.observed(i);
    const auto heads = static_cast<std::size_t>(plan.heads);

    // The queries are a sample; what they happen to be is known and taken out: the average over all
    // queries plus what the simulation deviates from the closed form at these.
    Jackknifed deviation = 0;
    double terms = 0;
    for (std::size_t q = 0; q < seen.queries.size(); ++q) {
      const std::vector<Jackknifed>& c = seen.queries[q].head_covariance;
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t l = h + 1; l < heads; ++l) {
          const Jackknifed rho2 =
              c[h * heads + l] * c[h * heads + l] / (c[h * heads + h] * c[l * heads + l]);
          deviation = deviation + 0.5 * log(rho2) - log_correlation(plan, frames, t, q, h, l);
          ++terms;
        }
      }
    }
    const Jackknifed mean = mean_over_queries + deviation / terms;
    finding.comparisons.push_back(
        equal_to("mean log correlation plus the chordal index " + std::to_string(chordal), mean,
                 -chordal, 1, experiment.margin(), experiment.node_counts()));
  }
  return {std::move(finding)};
}

}  // namespace

Claim log_correlation_claim() {
  return {.name = "log_correlation",
          .forms = {{.name = "chordal at sqrt(d_k)", .examine = is_minus_chordal}}};
}

}  // namespace headlab
