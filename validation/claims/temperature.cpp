// SPDX-License-Identifier: Apache-2.0
// Why attention divides by sqrt(d_k). A softmax head at a query of projected length |q|, keys
// N(0, I), averages over n_eff = n exp(-|q|^2/t^2) keys: V = s2/n_eff to leading order. A typical
// query has |q|^2 = d_k, so n_eff/n is 1/e for every d_k at t = sqrt(d_k) and e^(-d_k) at t = 1.
//
// Condensation (the random energy model of Derrida 1981): with logits of standard deviation sigma,
// V ~ s2 e^(sigma^2)/n below sigma^2 = (log n)/2; above sigma_c = sqrt(2 log n) a few keys take
// all, and E sum w^2 tends to 1 - sigma_c/sigma.
#include <cmath>
#include <numbers>

#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/theory/exact/softmax.h"

namespace headlab {
namespace {

/// n V/s2 of a condition: 1 over the share of keys a head averages over.
Jackknifed inverse_share(Experiment& experiment, std::size_t which) {
  const double sd = std::get<NormalNoise>(experiment.condition(which).noise).sd;
  const double n = static_cast<double>(experiment.condition(which).n);
  return experiment.observed(which).head_variance_mean * (n / (sd * sd));
}

/// The conditions raise d_k; the query has projected length sqrt(d_k) in each.
std::vector<Finding> share_is_one_over_e(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    finding.comparisons.push_back(
        equal_to("n V/s2 over e, less 1, at d_k " + std::to_string(experiment.condition(i).k),
                 inverse_share(experiment, i), std::numbers::e, std::numbers::e,
                 experiment.margin(), experiment.node_counts()));
  }
  return {std::move(finding)};
}

/// Condition 0 below the threshold, condition 1 above it; the standard deviation of the logits is
/// |q|/t.
std::vector<Finding> condensation(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan& plan = experiment.plan(i);
    const double t = std::get<SoftmaxKernel>(plan.kernel).temperature;
    const double sigma = plan.query_points.at(0) / t;
    const double n = static_cast<double>(plan.n);
    const bool below = sigma * sigma < std::log(n) / 2;
    const double squared_weights =
        below ? std::exp(sigma * sigma) / n : condensed_squared_weights(plan.n, sigma);
    finding.comparisons.push_back(equal_to(
        std::string("E sum w^2 ") + (below ? "below" : "above") + " the threshold, relative",
        inverse_share(experiment, i) / n, squared_weights, squared_weights, experiment.margin(),
        experiment.node_counts()));
  }
  return {std::move(finding)};
}

}  // namespace

Claim temperature_claim() {
  const std::string keys = "Keys N(0, I), noise alone, a query of projected length sqrt(d_k)";
  return {
      .name = "temperature",
      .forms = {
          {.name = "sqrt(d_k)",
           .statement = "At temperature sqrt(d_k) a head averages over n/e keys at a typical "
                        "query, whatever d_k.",
           .assumptions = keys + ", and n so large that n_eff is too.",
           .refuted_by = "n V/s2 beyond the margin of e at some d_k.",
           .examine = share_is_one_over_e},
          {.name = "one",
           .statement =
               "At temperature 1 a head averages over n/e keys at a typical query, whatever d_k.",
           .assumptions = keys + ".",
           .refuted_by = "n V/s2 beyond the margin of e at some d_k.",
           .examine = share_is_one_over_e},
          {.name = "condensation",
           .statement = "E sum w^2 is e^(sigma^2)/n for logits of variance below (log n)/2, "
                        "and 1 - sigma_c/sigma above sigma_c = sqrt(2 log n).",
           .assumptions = "Keys N(0, I); limits for large n, approached like 1/log n above "
                          "the threshold.",
           .refuted_by = "A value beyond the margin.",
           .examine = condensation}}};
}

}  // namespace headlab
