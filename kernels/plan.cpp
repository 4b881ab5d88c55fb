// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan.h"

#include <variant>

#include "kernels/controls.h"
#include "kernels/laws.h"
#include "kernels/stack/metrics.h"
#include "kernels/stack/stack.h"

namespace headlab {

Plan::Plan() = default;
Plan::~Plan() = default;
Plan::Plan(const Plan&) = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(const Plan&) = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

MomentLayout Plan::layout() const {
  if (stack) return stack_layout(stack->layers);
  return {.queries = queries,
          .heads = heads,
          .mode = moments,
          .conditional = estimator == Estimator::conditional,
          .controls = controls == nullptr            ? ControlStatistics::none
                      : controls->has_coefficients() ? ControlStatistics::controlled
                                                     : ControlStatistics::sums};
}

bool is_softmax(const Plan& plan) {
  return std::holds_alternative<SoftmaxKernel>(*plan.kernel);
}

bool has_constant_noise(const Plan& plan) {
  const bool of_points =
      std::visit([](const auto& noise) { return noise.constant_scale; }, *plan.noise);
  return of_points && plan.n % plan.mechanism.merge.stride == 0;
}

bool shares_draws(const Plan& a, const Plan& b) {
  // Laws refer to the table by offset, so equal laws of equal tables hold equal numbers.
  return (a.stack != nullptr) == (b.stack != nullptr) && a.n == b.n && a.d == b.d &&
         a.seed == b.seed && a.fixed_design_seed == b.fixed_design_seed && a.streams == b.streams &&
         a.ar1 == b.ar1 && a.estimator == b.estimator && a.design == b.design &&
         a.regression == b.regression && a.noise == b.noise && a.table == b.table;
}

}  // namespace headlab
