// SPDX-License-Identifier: Apache-2.0
// What the sum of the heads hides of them. The map (Z_1, .., Z_H) -> sum_h Z_h W_O^h of n tokens
// has nullity n (H d_v - rank W_O), and n (H d_v - rank W_O Q) before a read-out Q of the sum.
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/stack/maps.h"
#include "validation/claims/claim.h"
#include "validation/claims/stack_examples.h"

namespace headlab {
namespace {

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
    finding.comparisons.push_back(
        equal_to("nullity, weights " + std::to_string(draw + 1),
                 static_cast<double>(output_projection_nullity(n, projection)), claimed, 1,
                 experiment.margin(), {}));
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

Claim head_channels_claim() {
  return {.name = "head_channels",
          .forms = {{.name = "read-out", .examine = read_out_hides},
                    {.name = "equal row spaces", .examine = sum_hides},
                    {.name = "full output", .examine = sum_hides}}};
}

}  // namespace headlab
