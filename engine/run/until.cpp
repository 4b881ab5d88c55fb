// SPDX-License-Identifier: Apache-2.0
#include "engine/run/until.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/files/error.h"
#include "engine/moments/estimates.h"
#include "engine/moments/measures.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

[[noreturn]] void reject_target_of(const PrecisionTarget& target, const std::string& problem) {
  throw InvalidInput("--until: " + target.text() + ": " + problem);
}

/// Figures of moments that vary, so that those which are undefined always are.
ErrorTerms<double> made_up_terms(const Plan& plan) {
  const MomentLayout layout = plan.layout();
  Moments moments;
  moments.count = min_replicates_for_mcse;
  moments.mean.assign(layout.statistics(), 0);
  moments.comoment.assign(layout.comoments(), 1);
  const std::vector<double> truth(static_cast<std::size_t>(plan.queries), 0);
  ErrorTerms<double> terms = error_terms(layout, moments, plan.head_weights, truth);
  if (plan.redraws) terms.queries.clear();
  return terms;
}

}  // namespace

void require_targets_fit(std::span<const PrecisionTarget> targets, const Scenario& scenario,
                         const References& references) {
  const std::size_t count = scenario.conditions.size();
  require_figures(targets, names_of(scenario.conditions.front().measures));
  for (const PrecisionTarget& target : targets) {
    if (target.of_difference && references.of.empty()) {
      reject_target_of(target, "needs a condition to subtract - give --against or --difference");
    }
    if (!target.condition) continue;
    if (*target.condition < count) {
      if (!target.of_difference || references.of[*target.condition]) continue;
      reject_target_of(target, "nothing is subtracted from that condition");
    }
    reject_target_of(target, "there is no such condition (allowed: #0" +
                                 (count > 1 ? " to #" + std::to_string(count - 1) : "") + ")");
  }
  if (scenario.conditions.front().stack) {
    throw InvalidInput(
        "--until: is for figures of studies of regression - write run.replicates for a study of "
        "depth");
  }
  const std::uint64_t most = scenario.conditions.front().replicates;
  if (std::ranges::any_of(scenario.conditions, [&](const Condition& condition) {
        return condition.replicates != most;
      })) {
    throw InvalidInput(
        "--until: gives all conditions one number of replicates, and the scenario sweeps "
        "run.replicates - take it out of [sweep]");
  }
  if (most < min_replicates_for_mcse) {
    throw InvalidInput("--until: " + counted(most, "replicate") +
                       " at most: no standard errors - allow 8 or more");
  }
}

void require_targets_defined(std::span<const PrecisionTarget> targets,
                             const std::vector<ConditionResult>& conditions) {
  std::vector<std::optional<std::size_t>> defined(targets.size());  // a condition that has it
  std::vector<std::optional<std::size_t>> undefined(targets.size());
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const ErrorTerms<double> terms = made_up_terms(conditions[i].plan);
    const auto is_defined = [&](const FigureName& name) {
      const double* figure = find_figure<double>(terms, name);
      return figure != nullptr && !std::isnan(*figure);
    };
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (targets[t].condition.value_or(i) != i) continue;
      const std::vector<FigureName> parts =
          made_of(targets[t].figure, conditions[i].condition->measures);
      std::optional<std::size_t>& seen =
          std::ranges::all_of(parts, is_defined) ? defined[t] : undefined[t];
      if (!seen) seen = i;
    }
  }
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (!undefined[t]) continue;
    const Plan& plan = conditions[*undefined[t]].plan;
    std::string problem =
        "is undefined in condition #" + std::to_string(*undefined[t]) + ", which has " +
        counted(static_cast<std::uint64_t>(plan.queries), "query", "queries") + ", " +
        counted(static_cast<std::uint64_t>(plan.heads), "head") + " and " +
        (plan.moments == MomentMode::pairwise ? "pairwise" : "aggregate") + " moments";
    if (defined[t]) {
      PrecisionTarget alone = targets[t];
      alone.condition = defined[t];
      problem += " - name the conditions that have it, as " + alone.text();
    }
    reject_target_of(targets[t], problem);
  }
}

Look look_at(std::span<const PrecisionTarget> targets,
             const std::vector<ConditionResult>& conditions) {
  Look look{.replicates = conditions.front().tree.count()};
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const ConditionDifference* difference = conditions[i].difference.get();
    const bool has_reference = difference != nullptr && difference->reference;
    look.add(targets, i, conditions[i].estimates, has_reference ? &difference->terms : nullptr);
  }
  return look;
}

}  // namespace headlab
