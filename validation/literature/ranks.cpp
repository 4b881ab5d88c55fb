// SPDX-License-Identifier: Apache-2.0
// What layers do to the ranks of tokens and of the outputs of heads, in integers: of drawn examples
// rounded to thousandths, which are generic where the draws are.
//
// layer_norm: with Y = X less the mean of each row and sigma_i the length that row i is divided by,
// the normed tokens are D^-1 Y, D = diag(sigma). Their affine rank is rank Y - 1 if sigma is in the
// column space of Y, else rank Y. It is so for generic tokens only if there are more tokens than
// features.
//
// span: a layer gives sum_h A_h X V_h: rows of A_h X are combinations of tokens, and V_h = w I
// leaves them there. Another V_h does not, unless tokens span everything.
//
// head_channels: the map (Z_1, .., Z_H) -> sum_h Z_h W_O^h of n tokens has nullity
// n (H d_v - rank W_O), and n (H d_v - rank W_O Q) before a read-out Q of the sum.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/plan.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/maps.h"
#include "kernels/stack/worker.h"
#include "validation/claims/claim.h"
#include "validation/literature/integer_ranks.h"
#include "validation/literature/stack_examples.h"

namespace headlab {
namespace {

/// Adds that an example has the rank that is claimed.
void add_rank(const Experiment& experiment, const std::string& what, int rank, int claimed,
              Finding& finding) {
  finding.comparisons.push_back(equal_to(what, rank, claimed, 1, experiment.margin(), {}));
}

/// The norm on the tokens of each condition.
std::vector<Finding> keeps_affine_rank(Experiment& experiment) {
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Plan plan = faulty_plan(experiment, i);
    const TokenNorm& norm = plan.stack->norm;
    const std::uint64_t sets = plan.stack->tokens.size() > 0 ? 1 : drawn_examples;
    for (std::uint64_t set = 0; set < sets; ++set) {
      const NormedRanks ranks = normed_ranks(thousandths(stack_tokens(plan, set)), norm.kind,
                                             {std::llround(norm.epsilon * 1e6), 1});
      add_rank(experiment,
               "affine rank after the norm, condition #" + std::to_string(i) + ", tokens #" +
                   std::to_string(set),
               ranks.after, ranks.before, finding);
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
      equal_to("share of the residual after the last layer with layer norm, against that without",
               shares[1], shares[0], 1, experiment.margin(), {}));
  return {std::move(finding)};
}

/// One head of causal uniform attention, whose weights times `common` are integers.
std::vector<Finding> stays_inside(Experiment& experiment) {
  const Plan plan = faulty_plan(experiment, 0);
  const auto n = static_cast<Eigen::Index>(plan.n);
  std::int64_t common = 1;
  for (Eigen::Index i = 1; i <= n; ++i) common = std::lcm(common, static_cast<std::int64_t>(i));
  IntegerMatrix attention = IntegerMatrix::Zero(n, n);
  for (Eigen::Index i = 0; i < n; ++i) attention.row(i).head(i + 1).setConstant(common / (i + 1));
  Finding finding;
  for (std::uint64_t draw = 0; draw < drawn_examples; ++draw) {
    const IntegerMatrix tokens = thousandths(stack_tokens(plan, draw));
    const IntegerMatrix value =
        thousandths(value_map(*plan.stack, {.seed = plan.seed, .replicate = draw}, 0, 0, plan.d));
    add_rank(experiment, "dimensions outside the span of tokens #" + std::to_string(draw),
             dimensions_outside_span(tokens, attention * tokens * value), 0, finding);
  }
  return {std::move(finding)};
}

/// X + relu(X W_1 + b_1) W_2 on tokens of few dimensions.
std::vector<Finding> lifts_to_full_rank(Experiment& experiment) {
  const Plan plan = faulty_plan(experiment, 0);
  const IntegerMatrix tokens = thousandths(stack_tokens(plan, 0));
  Finding finding;
  for (std::uint64_t draw = 0; draw < drawn_examples; ++draw) {
    const Mlp mlp = layer_mlp(*plan.stack, {.seed = plan.seed, .replicate = draw}, 0, plan.d);
    const IntegerMatrix moved = integer_mlp(tokens, thousandths(mlp.input),
                                            thousandths(1000 * mlp.bias), thousandths(mlp.output));
    // The branch has three factors of 1000, the tokens one.
    const IntegerMatrix image = moved + (1000 * 1000 - 1) * tokens;
    add_rank(experiment, "rank after MLP #" + std::to_string(draw), exact_rank(image),
             static_cast<int>(experiment.plan().n), finding);
  }
  return {std::move(finding)};
}

IntegerMatrix drawn_weights(const StackDraws& from, Purpose purpose, std::uint64_t point,
                            Eigen::Index rows, Eigen::Index columns) {
  return thousandths(normal_matrix(from, purpose, point, rows, columns, 1));
}

/// \param reads_out what the first head of the second layer asks of the sum, its W_Q, or all of it
std::vector<Finding> hides_all_but_one(Experiment& experiment, bool reads_out) {
  const Plan plan = faulty_plan(experiment, 0);
  const auto& maps = std::get<GaussianMaps>(plan.stack->maps);
  const int heads = plan.stack->heads;
  const int n = static_cast<int>(plan.n);
  const int claimed = n * (heads - 1) * std::get<GaussianMaps>(experiment.plan().stack->maps).k;
  Finding finding;
  for (std::uint64_t draw = 0; draw < drawn_examples; ++draw) {
    const StackDraws from = {.seed = plan.seed, .replicate = draw};
    IntegerMatrix projection(heads * maps.value_dim, plan.d);
    for (int h = 0; h < heads; ++h) {
      // Averaged heads have one block in common.
      const auto block = static_cast<std::uint64_t>(plan.stack->averaged ? 0 : h);
      projection.middleRows(h * maps.value_dim, maps.value_dim) =
          drawn_weights(from, Purpose::output_weights, block, maps.value_dim, plan.d);
    }
    if (reads_out) {
      const auto second_layer = static_cast<std::uint64_t>(heads);
      projection =
          (projection * drawn_weights(from, Purpose::query_weights, second_layer, plan.d, maps.k))
              .eval();
    }
    add_rank(experiment, "nullity, weights #" + std::to_string(draw),
             n * (heads * maps.value_dim - exact_rank(projection)), claimed, finding);
  }
  return {std::move(finding)};
}

std::vector<Finding> read_out_hides(Experiment& experiment) {
  return hides_all_but_one(experiment, true);
}

std::vector<Finding> sum_hides(Experiment& experiment) {
  return hides_all_but_one(experiment, false);
}

}  // namespace

Claim layer_norm_claim() {
  return {.name = "layer_norm",
          .forms = {{.name = "n <= d", .examine = keeps_affine_rank},
                    {.name = "n > d", .examine = keeps_affine_rank},
                    {.name = "every token set", .examine = keeps_affine_rank},
                    {.name = "no part in collapse", .examine = shares_agree}}};
}

Claim span_claim() {
  return {.name = "span",
          .forms = {{.name = "identity values, or tokens that span all", .examine = stays_inside},
                    {.name = "any value maps", .examine = stays_inside},
                    {.name = "mlp", .examine = lifts_to_full_rank}}};
}

Claim head_channels_claim() {
  return {.name = "head_channels",
          .forms = {{.name = "read-out", .examine = read_out_hides},
                    {.name = "equal row spaces", .examine = sum_hides},
                    {.name = "full output", .examine = sum_hides}}};
}

}  // namespace headlab
