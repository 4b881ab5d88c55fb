// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/conditional.h"

#include <cstddef>
#include <limits>
#include <stdexcept>

#include "kernels/plan.h"
#include "kernels/reference/ensemble.h"

namespace headlab {

ConditionalTheory conditional_theory(const Plan& plan, const TrainingSet& sample) {
  Plan conditional = plan;
  conditional.estimator = Estimator::conditional;
  conditional.moments = MomentMode::pairwise;
  const MomentLayout layout = conditional.layout();
  ConditionalTheory theory;
  const std::vector<double> statistics = reference_statistics(conditional, sample, theory.windows);

  const Eigen::Index heads = plan.heads;
  double alignment = 0;
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    const double* at = statistics.data() + q * layout.per_query();
    HeadTheory query{Eigen::Map<const Eigen::VectorXd>(at, heads).array() - plan.truth[q],
                     Eigen::VectorXd::Zero(heads), Eigen::MatrixXd::Zero(heads, heads),
                     Eigen::MatrixXd::Zero(heads, heads)};
    for (Eigen::Index h = 0; h < heads; ++h) {
      for (Eigen::Index l = h; l < heads; ++l) {
        const std::size_t pair =
            layout.pair(static_cast<std::size_t>(h), static_cast<std::size_t>(l));
        query.covariance(h, l) = query.covariance(l, h) = at[layout.noise_offset() + pair];
      }
    }
    theory.queries.push_back(std::move(query));
    if (layout.has_alignment()) alignment += at[layout.alignment_offset()] / plan.queries;
  }
  theory.weights_index =
      layout.has_alignment() ? 1 - alignment : std::numeric_limits<double>::quiet_NaN();
  return theory;
}

ConditionalTheory conditional_theory(const Plan& plan) {
  if (!plan.fixed_design_seed) throw std::invalid_argument("the design is not fixed");
  return conditional_theory(plan, draw_training_set(plan, 0));
}

}  // namespace headlab
