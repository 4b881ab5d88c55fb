// SPDX-License-Identifier: Apache-2.0
// What layer norm does to tokens: their affine rank, in integers, and their collapse through depth.
//
// With Y = X less the mean of each row and sigma_i the length that row i is divided by, the normed
// tokens are D^-1 Y, D = diag(sigma). Their affine rank is rank Y - 1 if sigma is in the column
// space of Y, else rank Y. It is so for generic tokens only if there are more tokens than features.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/stack/layers.h"
#include "kernels/stack/worker.h"
#include "validation/claims/claim.h"
#include "validation/claims/stack_examples.h"

namespace headlab {
namespace {

/// The norm on the tokens of each condition, in thousandths.
std::vector<Finding> keeps_affine_rank(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan plan = faulty_plan(experiment, i);
    const TokenNorm& norm = plan.stack->norm;
    const std::uint64_t sets = plan.stack->tokens.size() > 0 ? 1 : drawn_examples;
    for (std::uint64_t set = 0; set < sets; ++set) {
      const NormedRanks ranks = normed_ranks(thousandths(stack_tokens(plan, set)), norm.kind,
                                             {std::llround(norm.epsilon * 1e6), 1});
      finding.comparisons.push_back(equal_to("affine rank behind the norm, condition " +
                                                 std::to_string(i + 1) + ", tokens " +
                                                 std::to_string(set + 1),
                                             static_cast<double>(ranks.affine_rank_after),
                                             ranks.affine_rank, 1, experiment.margin(), {}));
    }
  }
  return {std::move(finding)};
}

/// The first condition has no norm, the second has one.
std::vector<Finding> shares_agree(Experiment& experiment) {
  double shares[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const Plan plan = faulty_plan(experiment, i);
    const auto layers = stack_metrics(*plan.stack, {.seed = plan.seed}, stack_tokens(plan, 0));
    shares[i] = layers.back().residual_share;
  }
  Finding finding;
  finding.comparisons.push_back(
      equal_to("share of the residual behind the last layer with layer norm, against that without",
               shares[1], shares[0], 1, experiment.margin(), {}));
  return {std::move(finding)};
}

}  // namespace

Claim layer_norm_claim() {
  return {.name = "layer_norm",
          .forms = {{.name = "n <= d", .examine = keeps_affine_rank},
                    {.name = "n > d", .examine = keeps_affine_rank},
                    {.name = "every token set", .examine = keeps_affine_rank},
                    {.name = "no part in collapse", .examine = shares_agree}}};
}

}  // namespace headlab
