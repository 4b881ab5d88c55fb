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

}  // namespace

Claim head_channels_claim() {
  const std::string statement =
      "In this form: the sum of the heads hides all of them but one, nullity n (H - 1) d_k, ";
  const std::string sizes =
      "Of the paper its abstract was read: what the nullity is of is inferred. n = 5, H = 4, "
      "d_k = d_v = 3, d = 12; normal weights rounded to thousandths, ranks in integers. ";
  const auto form = [&](const char* name, const std::string& of, const std::string& more,
                        const char* origin, bool reads_out) {
    return ClaimForm{.name = name,
                     .statement = statement + of,
                     .assumptions = sizes + more,
                     .refuted_by = "Another nullity.",
                     .origin = origin,
                     .examine = [reads_out](Experiment& experiment) {
                       return hides_all_but_one(experiment, reads_out);
                     }};
  };
  return {.name = "head_channels",
          .forms = {form("read-out", "from a read-out of d_k dimensions.",
                         "The read-out is W_Q of a head of the next layer.",
                         "arXiv:2604.23681, abstract", true),
                    form("equal row spaces", "where all blocks of W_O have one row space.",
                         "One block for all heads, as averaged values have.",
                         "arXiv:2604.23681, abstract", false),
                    form("full output", "for generic known W_O.",
                         "All d coordinates of the sum, H d_v = d.",
                         "arXiv:2604.23681, the same number in another setting", false)}};
}

}  // namespace headlab
