// SPDX-License-Identifier: Apache-2.0
// What leaves the span of the tokens. A layer gives sum_h A_h X V_h: rows of A_h X are combinations
// of tokens, and V_h = w I leaves them there. Another V_h does not, unless tokens span everything.
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/stack/maps.h"
#include "kernels/stack/worker.h"
#include "validation/claims/claim.h"
#include "validation/claims/stack_examples.h"

namespace headlab {
namespace {

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
    finding.comparisons.push_back(
        equal_to("dimensions outside the span of tokens " + std::to_string(draw + 1),
                 static_cast<double>(dimensions_outside_span(tokens, attention * tokens * value)),
                 0, 1, experiment.margin(), {}));
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
    finding.comparisons.push_back(equal_to(
        "rank behind MLP " + std::to_string(draw + 1), static_cast<double>(exact_rank(image)),
        static_cast<double>(experiment.plan().n), 1, experiment.margin(), {}));
  }
  return {std::move(finding)};
}

}  // namespace

Claim span_claim() {
  return {.name = "span",
          .forms = {{.name = "identity values, or tokens that span all", .examine = stays_inside},
                    {.name = "any value maps", .examine = stays_inside},
                    {.name = "mlp", .examine = lifts_to_full_rank}}};
}

}  // namespace headlab
