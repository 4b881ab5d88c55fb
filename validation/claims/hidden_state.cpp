// SPDX-License-Identifier: Apache-2.0
// Scores that remember those of the layers before, score_l = a score_(l-1) + (1-a) now_l. Diameters
// of one head have the bound
//   D_l <= |V| tanh(B_l/4) D_(l-1),  B_1 = |M| D_0^2/t,  B_l = a B_(l-1) + (1-a) |M| D_(l-1)^2/t,
// which falls at least linearly. On the simplex, for 0 < a < 1, log residuals fall like
// -(L^2/2) log(1/a), so that their second differences tend to log a; for a = 1 these are 0. The
// other forms are in the scenarios.
#include "validation/claims/claim.h"
#include "validation/claims/diameter_bounds.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

std::vector<Finding> is_linear(Experiment& experiment) {
  const auto& rows = experiment.observed_layers().rows;
  const std::size_t last = rows.size() - 1;
  const auto log_residual = [&](std::size_t layer) {
    return rows[layer].metrics[layer_metric("log_residual")];
  };
  const Jackknifed second =
      log_residual(last) - Jackknifed(2) * log_residual(last - 1) + log_residual(last - 2);
  Finding finding;
  finding.comparisons.push_back(
      equal_to("second difference of log residuals in layer " + std::to_string(last), second, 0, 1,
               experiment.margin(), experiment.node_counts()));
  return {std::move(finding)};
}

}  // namespace

Claim hidden_state_claim() {
  const char* const paper = "Masumura and Taki (arXiv:2511.20698)";
  return {.name = "hidden_state",
          .forms = {{.name = "bound",
                     .statement = "With a memory of scores a bound that falls linearly holds for "
                                  "log diameters, in place of a doubly exponential one: D_l <= "
                                  "|V| tanh(B_l/4) D_(l-1), in every replicate.",
                     .assumptions = "Softmax, one head, memory .5, the same Gaussian maps in six "
                                    "layers, no skip, norm, mask or MLP. Of the paper a note with "
                                    "its equations was read.",
                     .refuted_by = "A replicate with a larger diameter in some layer.",
                     .origin = paper,
                     .examine = within_diameter_bounds},
                    {.name = "linear rate",
                     .statement = "In this form: linear is not only a bound but the rate, with a "
                                  "memory between 0 and 1.",
                     .assumptions = "Two equiangular tokens, one head, memory .5, no skip, norm or "
                                    "MLP.",
                     .refuted_by = "A second difference of log residuals that is not 0, beyond the "
                                   "margin.",
                     .origin = std::string("a reading of ") + paper,
                     .examine = is_linear}}};
}

}  // namespace headlab
