// SPDX-License-Identifier: Apache-2.0
// MSE(x) = (sum_h a_h B_h + (A - 1) m(x))^2 + sum_h a_h^2 V_h + sum_{h != l} a_h a_l C_hl, with
// B_h = E f_h - m(x), C_hl = Cov(f_h, f_l), V_h = C_hh over training sets. As a statement about
// simulated moments it is an identity; the claim is that the closed forms of B, V and C are right.
#include "validation/claims/against_theory.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

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
  const std::string statement =
      "MSE = B^2 + V/H + (1 - 1/H) C, where bias, variance and covariance have the closed form ";
  return {.name = "decomposition",
          .forms = {
              {.name = "exact finite n",
               .statement = statement + "that 1/D as an integral gives, at every n.",
               .assumptions = "Normal design; Gaussian kernel with d_k = 1, or softmax.",
               .refuted_by = "A bias, variance, covariance or MSE beyond the margin of its "
                             "closed form.",
               .examine = exact},
              {.name = "exact conditional",
               .statement = statement + "mu_h = sum w m, S_hl = sum s^2 w_h w_l given the design.",
               .assumptions = "A fixed design; any law and kernel. The noise is simulated.",
               .refuted_by = "A figure beyond the margin of its closed form.",
               .examine = exact},
              {.name = "first order",
               .statement = statement + "of the tilt lemma, to first order in 1/n.",
               .assumptions = "Normal design, Gaussian kernel or softmax, and next orders below "
                              "the margin.",
               .refuted_by = "A figure further from its closed form than margin and remainder "
                             "together.",
               .examine = first_order}}};
}

}  // namespace headlab
