// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocations.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

#include "engine/files/enumerators.h"
#include "engine/files/error.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/design_rounding.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/subspaces.h"
#include "kernels/laws.h"

namespace headlab {
namespace {

constexpr BandwidthRule all_rules[] = {BandwidthRule::fixed, BandwidthRule::sqrt_dim,
                                       BandwidthRule::rate, BandwidthRule::tuned};

template <class Law, class Variant>
bool is(const Variant& law) {
  return std::holds_alternative<Law>(law);
}

/// What the reader of scenarios asks of the heads of the scenario, of those of an allocation. Haar
/// heads are drawn again, and learned ones may turn to any direction.
void require_held(const Condition& one, const std::vector<DesignSpread>& spreads) {
  if (std::ranges::all_of(spreads, &DesignSpread::precise_everywhere)) return;
  const bool any = is<HaarSubspaces>(*one.subspaces) || is<LearnedSubspaces>(*one.subspaces);
  try {
    require_head_precision(*one.design, spreads,
                           any ? std::vector<Eigen::MatrixXd>() : subspace_bases(one));
  } catch (const ParameterError& error) {
    reject(one, "data.design." + error.key(),
           std::string(error.what()) + " (with heads of dim " + std::to_string(one.k) + ")");
  }
}

}  // namespace

void require_any_size(const Condition& base) {
  require_one_draw(base,
                   "an allocation draws haar heads again for every 32 training sets by itself, and "
                   "queries once");
  const std::string per_head = parameter_per_head(base.mechanism);
  if (!per_head.empty()) {
    reject(base, "heads.mechanism." + per_head,
           "gives every head its number, and allocations have any number of heads - write one "
           "number for all");
  }
  const auto& transform = stage<TransformStage>(base.mechanism);
  if (transform && !transform->matrix.empty()) {
    reject(base, "heads.mechanism.transform.matrix",
           "is for heads of one dimension - write mix, or leave transform out");
  }
  if (stage<CompressStage>(base.mechanism)) {
    reject(base, "heads.mechanism.compress", "is fitted to heads of one size - leave compress out");
  }
  const auto& subspaces = *base.subspaces;
  if (is<BlockSubspaces>(subspaces) || is<PrincipalAngleSubspaces>(subspaces) ||
      is<ExplicitSubspaces>(subspaces) || is<FileSubspaces>(subspaces) ||
      is<LearnedSubspaces>(subspaces)) {
    reject(base, "heads.subspaces",
           std::string("law \"") + std::visit([](const auto& law) { return law.name; }, subspaces) +
               "\" gives heads of the scenario's size (allowed: orthogonal, aligned, haar, "
               "equiangular) - write --set 'heads.subspaces={law=\"haar\"}'" +
               (base.swept.empty() ? "" : " --set 'sweep={}'"));
  }
  if (is<ExplicitWeights>(*base.weights) || is<OptimalWeights>(*base.weights)) {
    reject(base, "heads.weights",
           std::string("law \"") +
               std::visit([](const auto& law) { return law.name; }, *base.weights) +
               "\" gives the weights of so many heads (allowed: uniform, geometric)");
  }
}

void require_points_for(const Condition& base, std::uint64_t n) {
  Sizes sizes = sizes_of(base);
  sizes.n = n;
  const std::string at = ", with n = " + std::to_string(n);
  try {
    check_stages(base.mechanism, sizes, *base.kernel, projects_queries_apart(base));
  } catch (const ParameterError& error) {
    reject(base, "heads.mechanism." + error.key(), error.what() + at);
  }
  try {
    std::visit([&](const auto& law) { law.check(SequenceSetting{.design = *base.design, .n = n}); },
               *base.sequence);
  } catch (const ParameterError& error) {
    reject(base, "data.sequence", error.what() + at);
  }
}

void require_rule_for(const Condition& base, BandwidthRule rule) {
  const std::string name = std::visit([](const auto& law) { return law.name; }, *base.kernel);
  const bool softmax = is<SoftmaxKernel>(*base.kernel);
  if (rule == BandwidthRule::rate && softmax) {
    throw InvalidInput(
        "--bandwidth-rule rate: is about bandwidths, kernel \"softmax\" has none "
        "(allowed: fixed, sqrt_dim, tuned)");
  }
  if (rule == BandwidthRule::sqrt_dim && !softmax && !is<GaussianKernel>(*base.kernel)) {
    throw InvalidInput(
        "--bandwidth-rule sqrt_dim: is about kernels \"softmax\" and \"gaussian\", this "
        "one is \"" +
        name + "\" (allowed: fixed, rate, tuned)");
  }
}

double width_by_rule(const Condition& condition, BandwidthRule rule) {
  constexpr double beta = 2;
  const double k = condition.k;
  if (rule == BandwidthRule::rate) {
    return std::pow(static_cast<double>(condition.n), -1 / (2 * beta + k));
  }
  if (rule == BandwidthRule::sqrt_dim) {
    return is<SoftmaxKernel>(*condition.kernel) ? std::sqrt(k) : std::sqrt(std::sqrt(k));
  }
  return kernel_width(*condition.kernel);
}

std::vector<Allocation> enumerate_allocations(int budget, int d) {
  std::vector<Allocation> allocations;
  for (int k = 1; k <= std::min(d, budget); ++k) allocations.push_back({budget / k, k});
  return allocations;
}

const char* rule_name(BandwidthRule rule) {
  return word_of<BandwidthRule::tuned>(rule, "fixed", "sqrt_dim", "rate", "tuned");
}

BandwidthRule find_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const BandwidthRule rule : all_rules) {
    if (name == rule_name(rule)) return rule;
    names.emplace_back(rule_name(rule));
  }
  throw InvalidInput("--bandwidth-rule: \"" + one_line(name) + "\" is unknown" +
                     suggestion(name, names));
}

double kernel_width(const KernelLaw& kernel) {
  return std::visit(
      [](const auto& law) {
        if constexpr (std::is_same_v<std::decay_t<decltype(law)>, SoftmaxKernel>) {
          return law.temperature;
        } else {
          return law.bandwidth;
        }
      },
      kernel);
}

void set_kernel_width(KernelLaw& kernel, double width) {
  std::visit(
      [&](auto& law) {
        if constexpr (std::is_same_v<std::decay_t<decltype(law)>, SoftmaxKernel>) {
          law.temperature = width;
        } else {
          law.bandwidth = width;
        }
      },
      kernel);
}

std::vector<Condition> allocation_conditions(const Condition& base, int budget, BandwidthRule rule,
                                             const std::vector<int>& dims) {
  if (budget < 1 || budget > max_budget) {
    throw InvalidInput("--budget: is " + std::to_string(budget) + " (allowed: 1 to " +
                       std::to_string(max_budget) + ")");
  }
  require_any_size(base);
  require_points_for(base, base.n);
  require_rule_for(base, rule);
  const int d = dimension_of(base);
  const std::vector<DesignSpread> spreads = spreads_of(*base.design);
  std::vector<Condition> conditions;
  for (const Allocation& allocation : enumerate_allocations(budget, d)) {
    if (!dims.empty() && std::ranges::find(dims, allocation.k) == dims.end()) continue;
    Condition& one = conditions.emplace_back(base);
    one.heads = allocation.heads;
    one.k = allocation.k;
    try {
      make_subspaces(one);
    } catch (const ParameterError&) {
      one.subspaces = HaarSubspaces{};
    }
    require_held(one, spreads);
    set_kernel_width(one.kernel.own(), width_by_rule(one, rule));
    one.moments = MomentMode::aggregate;
    one.swept.clear();
  }
  if (conditions.empty()) {
    throw InvalidInput("--dims: none is at most the budget " + std::to_string(budget) +
                       " and the dimension " + std::to_string(d) + " of the design");
  }
  return conditions;
}

void require_replicates(const AllocateOptions& options) {
  if (options.replicates >= min_selection_look) return;
  throw InvalidInput("--replicates " + std::to_string(options.replicates) +
                     ": too few for a selection (allowed: at least " +
                     std::to_string(min_selection_look) + ")");
}

}  // namespace headlab
