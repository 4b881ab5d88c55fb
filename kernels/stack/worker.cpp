// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/worker.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <variant>
#include <vector>

#include "kernels/design_point.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/replicate_worker.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/metrics.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

class StackWorker : public ReplicateWorker {
 public:
  StackWorker(Plans plans, const std::vector<MomentLayout>& layouts,
              const StackArithmetic& arithmetic, decltype(stack_tokens)& tokens)
      : ReplicateWorker(layouts),
        plans_(plans.begin(), plans.end()),
        arithmetic_(arithmetic),
        tokens_(tokens) {}

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts>) override {
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      const Plan& plan = *plans_[p];
      const WorkPart part = WorkPart::number(p, plans_.size());
      const auto rows =
          runner_.run(*plan.stack, {plan.seed, number, &arithmetic_}, tokens_(plan, number));
      const std::size_t size = plan.layout().per_query();
      for (std::size_t l = 0; l < rows.size(); ++l) {
        write_metrics(rows[l], statistics[p].subspan(l * size, size));
      }
    }
  }

 private:
  std::vector<const Plan*> plans_;
  const StackArithmetic& arithmetic_;
  decltype(stack_tokens)& tokens_;
  StackRunner runner_;
};

}  // namespace

Eigen::MatrixXd stack_tokens(const Plan& plan, std::uint64_t replicate) {
  if (plan.stack->tokens.size() > 0) return plan.stack->tokens;
  Eigen::MatrixXd x(static_cast<Eigen::Index>(plan.n), plan.d);
  std::vector<float> point(static_cast<std::size_t>(point_buffer(plan.d)));
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    draw_design_point(*plan.design, plan.table.design(), plan.d,
                      plan.fixed_design_seed.value_or(plan.seed), plan.streams.design,
                      plan.streams.design_choice, plan.fixed_design_seed ? 0 : replicate,
                      static_cast<std::uint64_t>(i), point.data());
    for (int j = 0; j < plan.d; ++j)
      x(i, j) = static_cast<double>(point[static_cast<std::size_t>(j)]);
  }
  return x;
}

std::unique_ptr<Worker> make_stack_worker(Plans plans, const StackArithmetic& arithmetic,
                                          decltype(stack_tokens)& tokens) {
  std::vector<MomentLayout> layouts;
  for (const Plan* plan : plans) {
    if (!plan->stack) throw std::invalid_argument("a plan without a stack among stacks");
    layouts.push_back(plan->layout());
  }
  return std::make_unique<StackWorker>(plans, layouts, arithmetic, tokens);
}

namespace {

std::uint64_t mlp_width(const Stack& stack) {
  if (!stack.mlp) return 0;
  if (const auto* given = std::get_if<Mlp>(&*stack.mlp)) {
    return static_cast<std::uint64_t>(given->input.cols());
  }
  return static_cast<std::uint64_t>(std::get<GaussianMlp>(*stack.mlp).width);
}

}  // namespace

std::uint64_t stack_worker_bytes(Plans plans) {
  std::uint64_t largest = 0;
  std::uint64_t leaves = 0;
  for (const Plan* plan : plans) {
    const Stack& stack = *plan->stack;
    const std::uint64_t n = plan->n;
    const auto d = static_cast<std::uint64_t>(plan->d);
    const auto heads = static_cast<std::uint64_t>(stack.heads);
    const auto* maps = std::get_if<GaussianMaps>(&stack.maps);
    const bool factored = maps != nullptr && maps->samples == 0;
    const std::uint64_t k = factored ? static_cast<std::uint64_t>(maps->k) : d;
    const std::uint64_t value_dim = factored ? static_cast<std::uint64_t>(maps->value_dim) : d;
    // Attention of all heads, and their scores where there is a memory; scores, rollout and sums of
    // a layer; factors of the maps; tokens, their norms and panels; queries, keys and values.
    std::uint64_t numbers = n * n * (heads * (stack.memory > 0 ? 2 : 1) + 8) +
                            2 * heads * d * (k + value_dim) + n * d * 16 + 40 * (n + d) +
                            n * (2 * k + (heads + 1) * value_dim) +
                            (2 * d + 2 * n) * mlp_width(stack);
    // Pruned maps have a target, and are drawn as factors first.
    if (maps != nullptr && maps->samples > 0) numbers *= 2;
    largest = std::max(largest, numbers * (stack.spectra ? 2 : 1));
    leaves += 2 * leaf_replicates * plan->layout().statistics();
  }
  return 8 * (largest + leaves);
}

double stack_work(const Plan& plan) {
  const Stack& stack = *plan.stack;
  const auto n = static_cast<double>(plan.n);
  const auto d = static_cast<double>(plan.d);
  const auto* maps = std::get_if<GaussianMaps>(&stack.maps);
  const bool factored = maps != nullptr && maps->samples == 0;
  const double k = factored ? maps->k : d;
  const double value_dim = factored ? maps->value_dim : d;
  const double drawn = maps != nullptr ? 2 * d * (maps->k + maps->value_dim) : 0;
  const double of_head =
      (4 * n * d + 2 * n * n) * (k + value_dim) + 20 * drawn + (n <= 256 ? 40 + 2 * n : 40) * n * n;
  return stack.layers * (stack.heads * of_head + 4 * n * n * n +
                         4 * n * d * static_cast<double>(mlp_width(stack)));
}

}  // namespace headlab
