// SPDX-License-Identifier: Apache-2.0
// MSE(x) = (sum_h a_h B_h + (A - 1) m(x))^2 + sum_h a_h^2 V_h + sum_{h != l} a_h a_l C_hl, with
// B_h = E f_h - m(x), C_hl = Cov(f_h, f_l), V_h = C_hh over training sets. As a statement about
// simulated moments it is an identity; the claim is that the closed forms of B, V and C are right.
#include <cmath>
#include <string>

#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// A remainder as the largest error of its figure; a figure without one has none.
double error_of(const Remainder& figure) {
  return std::isnan(figure.remainder) ? 0.0 : std::abs(figure.remainder);
}

/// Compares the bias of every head, the covariance of every pair and the MSE, at every query. Units
/// are the closed forms' own: biases in root mean squared errors of the head, covariances in
/// sqrt(V_h V_l), MSE relative. B is tested and not B^2, whose estimate is far from normal near 0.
std::vector<Comparison> against_theory(const JackknifedEstimates& observed, const Theory& theory,
                                       double margin) {
  const std::span<const double> counts = observed.node_counts;
  std::vector<Comparison> all;
  for (std::size_t q = 0; q < observed.queries.size(); ++q) {
    const auto& seen = observed.queries[q];
    const auto& closed = theory.figures.queries.at(q);
    const std::string at = " at query " + std::to_string(q);
    const std::size_t heads = seen.head_bias.size();
    for (std::size_t h = 0; h < heads; ++h) {
      const Remainder& bias = closed.head_bias.at(h);
      const double variance = closed.head_covariance.at(h * heads + h).value;
      const double scale = std::sqrt(bias.value * bias.value + variance);
      all.push_back(equal_to("bias of head " + std::to_string(h) + at +
                                 ", in units of the root of its mean squared error",
                             seen.head_bias[h], bias.value, scale, margin, counts,
                             error_of(bias) / scale));
    }
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        const Remainder& covariance = closed.head_covariance.at(h * heads + l);
        const double scale = std::sqrt(closed.head_covariance[h * heads + h].value *
                                       closed.head_covariance[l * heads + l].value);
        const std::string what =
            h == l ? "variance of head " + std::to_string(h)
                   : "covariance of heads " + std::to_string(h) + " and " + std::to_string(l);
        all.push_back(equal_to(what + at + ", in units of sqrt(V_h V_l)",
                               seen.head_covariance.at(h * heads + l), covariance.value, scale,
                               margin, counts, error_of(covariance) / scale));
      }
    }
    all.push_back(equal_to("MSE" + at + ", relative to its closed form", seen.mse, closed.mse.value,
                           closed.mse.value, margin, counts,
                           error_of(closed.mse) / closed.mse.value));
  }
  return all;
}

std::vector<Finding> compare(Experiment& experiment, TheorySource source) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const std::vector<Comparison> part =
        against_theory(experiment.observed(i), experiment.theory(i, source), experiment.margin());
    finding.comparisons.insert(finding.comparisons.end(), part.begin(), part.end());
  }
  finding.note = "Closed form: " + experiment.theory(0, source).form + ".";
  return {std::move(finding)};
}

std::vector<Finding> exact(Experiment& experiment) {
  return compare(experiment, TheorySource::exact);
}

std::vector<Finding> first_order(Experiment& experiment) {
  return compare(experiment, TheorySource::first_order);
}

}  // namespace

Claim decomposition_claim() {
  return {.name = "decomposition",
          .forms = {{.name = "exact finite n", .examine = exact},
                    {.name = "exact conditional", .examine = exact},
                    {.name = "first order", .examine = first_order}}};
}

}  // namespace headlab
