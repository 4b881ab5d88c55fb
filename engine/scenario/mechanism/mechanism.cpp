// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/mechanism/mechanism.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <variant>

#include "kernels/kernel_laws.h"

namespace headlab {
namespace {

/// What each head sees; nothing where every head sees every token.
std::vector<SeenTokens> seen_by_heads(const MechanismStages& stages, int heads,
                                      std::uint64_t tokens) {
  const auto of = [](const auto& given, int h, std::uint64_t otherwise) {
    return given ? given->tokens[h] : otherwise;
  };
  std::vector<SeenTokens> seen;
  bool everything = true;
  for (int h = 0; h < heads; ++h) {
    seen.push_back(seen_tokens(
        tokens, of(stage<WindowStage>(stages), h, std::numeric_limits<std::uint64_t>::max()),
        of(stage<SkipStage>(stages), h, 0), of(stage<SinksStage>(stages), h, 0)));
    everything = everything && seen.back().count() == tokens;
  }
  if (everything) seen.clear();
  return seen;
}

std::uint64_t tokens_after_merge(const MechanismStages& stages, std::uint64_t n) {
  const auto& merge = stage<MergeStage>(stages);
  return merge ? Merge{.stride = merge->stride}.tokens(n) : n;
}

template <class... Stages>
std::vector<std::string> names_of(const OptionalStages<Stages...>&) {
  return {Stages::name...};
}

/// Visitor of a stage's parameters that finds one with several numbers, one a head.
struct PerHeadFinder {
  std::string key = {};

  template <class T, class... Rest>
  void required(const char* name, const T& member, Rest&&...) {
    if constexpr (std::is_same_v<T, PerHead>) {
      if (member.values.size() > 1) key = name;
    }
  }
  template <class T, class... Rest>
  void optional(const char* name, const T& member, Rest&&...) {
    required(name, member);
  }
};

}  // namespace

std::vector<std::string> stage_names() {
  return names_of(MechanismStages());
}

std::string parameter_per_head(const MechanismStages& stages) {
  std::string key;
  for_each_stage(stages, [&]<class Stage>(Stage one) {
    PerHeadFinder finder;
    one.parameters(finder);
    if (finder.key.empty()) return;
    key = Stage::name + (finder.key == Stage::shorthand ? "" : "." + finder.key);
  });
  return key;
}

bool any_stage(const MechanismStages& stages) {
  return std::apply([](const auto&... one) { return (one.has_value() || ...); }, stages);
}

SharedStages::operator const MechanismStages&() const {
  static const MechanismStages none;
  return given_ ? *given_ : none;
}

std::vector<std::string> stages_in_force(const MechanismStages& stages, std::uint64_t n, int heads,
                                         int k) {
  std::vector<std::string> names;
  const Mechanism all = mechanism_of(stages, n, heads);
  for_each_stage(stages, [&](const auto& one) {
    using Stage = std::remove_cvref_t<decltype(one)>;
    bool changes = true;
    if constexpr (requires { one.off(heads, k); }) {
      changes = !one.off(heads, k);
    } else {
      MechanismStages others = stages;
      std::get<std::optional<Stage>>(others).reset();
      // Sinks are tokens besides a window.
      if constexpr (std::is_same_v<Stage, WindowStage>)
        std::get<std::optional<SinksStage>>(others).reset();
      changes = mechanism_of(others, n, heads) != all;
      if constexpr (std::is_same_v<Stage, SinksStage>) {
        changes = changes && std::ranges::count(names, WindowStage::name) > 0;
      }
    }
    if (changes) names.emplace_back(Stage::name);
  });
  return names;
}

std::vector<std::string> stages_of_tokens(const MechanismStages& stages, std::uint64_t n, int heads,
                                          int k) {
  std::vector<std::string> names = stages_in_force(stages, n, heads, k);
  for_each_stage(stages, [&]<class Stage>(const Stage& one) {
    if constexpr (requires(Subspaces & w) { one.apply(w); }) std::erase(names, Stage::name);
  });
  return names;
}

void check_stages(const MechanismStages& stages, const Sizes& sizes, const KernelLaw& kernel,
                  bool projects_queries_apart) {
  const StageSetting setting{
      .sizes = sizes,
      .is_softmax = std::holds_alternative<SoftmaxKernel>(kernel),
      .is_compact =
          std::visit([](const auto& law) { return std::isinf(law.log_weight(1e12)); }, kernel),
      .has_log_weights = norm_coefficient_of(kernel).has_value(),
      .projects_queries_apart = projects_queries_apart,
      .tokens = tokens_after_merge(stages, sizes.n)};
  for_each_stage(stages, [&](const auto& one) {
    using Stage = std::remove_cvref_t<decltype(one)>;
    try {
      one.check(setting);
    } catch (const ParameterError& error) {
      throw ParameterError(
          std::string(Stage::name) + (error.key().empty() ? "" : "." + error.key()), error.what());
    }
  });
  if (stage<SinksStage>(stages) && !stage<WindowStage>(stages)) {
    throw ParameterError("sinks", "has no effect without window, which sees every token - give it");
  }
}

void apply_stages(const MechanismStages& stages, Subspaces& subspaces) {
  for_each_stage(stages, [&](const auto& one) {
    if constexpr (requires { one.apply(subspaces); }) one.apply(subspaces);
  });
}

Mechanism mechanism_of(const MechanismStages& stages, std::uint64_t n, int heads) {
  Mechanism mechanism;
  mechanism.seen = seen_by_heads(stages, heads, tokens_after_merge(stages, n));
  const Sizes sizes{.heads = heads, .n = n};
  for_each_stage(stages, [&](const auto& one) {
    if constexpr (requires { one.apply(mechanism, sizes); }) one.apply(mechanism, sizes);
  });
  return mechanism;
}

}  // namespace headlab
