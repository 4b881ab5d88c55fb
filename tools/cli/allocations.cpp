// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/allocations.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "engine/files/document.h"
#include "engine/run/units.h"
#include "tools/cli/characters.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/text_width.h"

namespace headlab::tools {
namespace {

std::string sizes_text(const AllocationStudy& study) {
  return "D " + std::to_string(study.budget) + ", n " + std::to_string(study.n);
}

bool is_study_reached(const AllocationStudy& study) {
  return std::ranges::any_of(study.rows,
                             [](const AllocationRow& row) { return row.replicates > 0; });
}

/// The candidates of a study with the advice.
std::string allocation_table(const AllocationStudy& study) {
  const bool softmax = std::holds_alternative<SoftmaxKernel>(study.rows.front().kernel);
  using Row = const AllocationRow&;
  std::vector<std::string> best =
      cells_of(study.rows, [](Row row) { return std::string(row.in_best_set ? "yes" : "no"); });
  if (study.advised) best[*study.advised] += ", advised";
  Columns columns;
  columns.add_key("H", cells_of(study.rows, [](Row row) { return std::to_string(row.heads); }),
                  true);
  columns.add_key("d_k", cells_of(study.rows, [](Row row) { return std::to_string(row.k); }), true);
  columns.add("heads", cells_of(study.rows, [](Row row) { return row.subspaces; }));
  columns.add(softmax ? "temperature" : "bandwidth",
              cells_of(study.rows, [](Row row) { return short_number(kernel_width(row.kernel)); }),
              true);
  columns.add_figures("MSE", cells_of(study.rows, [](Row row) { return row.mse; }));
  columns.add("replicates",
              cells_of(study.rows, [](Row row) { return std::to_string(row.replicates); }), true);
  columns.add("may be best", best);
  const std::string kernel =
      std::visit([](const auto& law) { return std::string(law.name); }, study.rows.front().kernel);
  std::string text =
      sizes_text(study) + ", " + kernel + " kernel, rule " + rule_name(study.rule) + ", " +
      std::to_string(study.queries) + (study.queries == 1 ? " query, " : " queries, ") +
      study.machine.backend + (study.machine.simd == "none" ? "" : "/" + study.machine.simd) +
      "\n\n" + columns.text("  ") + "\n" +
      wrapped(advice_text(study) + "\n" + advice_limits(study) + "\n", output_width());
  if (study.tuning.settings > 0) {
    text += "bandwidths: " + std::to_string(study.tuning.settings) + " tried in a pilot of " +
            std::to_string(study.tuning.replicates) + " replicates each";
    if (study.tuning.at_boundary > 0) {
      text += "; " + std::to_string(study.tuning.at_boundary) +
              " allocations are best at the end of the range searched";
    }
    text += "\n";
  }
  return text;
}

/// Throws InvalidInput for what any of the settings is rejected for, before the first: a shard has
/// few of them, or none.
void require_allocations(const Condition& base, std::span<const std::uint64_t> budgets,
                         std::span<const std::uint64_t> sizes, bool growth,
                         const AllocateOptions& options) {
  require_replicates(options);
  if (growth) require_growth(sizes, options);
  for (const std::uint64_t budget : budgets) {
    allocation_conditions(base, static_cast<int>(budget), options.rule, options.dims);
  }
}

/// Simulates what a shard has of the growth under one budget.
Outcome growth_of_shard(const Condition& base, int budget, std::span<const std::uint64_t> sizes,
                        const Session& session, const AllocateOptions& options,
                        const std::function<bool()>& is_here) {
  const Stopwatch watch;
  bool complete = true;
  try {
    for (const std::uint64_t n : sizes) {
      if (is_here()) simulate_growth_point(base, budget, n, session, options);
    }
  } catch (const TimeIsUp&) {
    complete = false;
  }
  return session.outcome(complete, watch);
}

}  // namespace

void add_allocations(Allocations& all, Condition base, std::span<const std::uint64_t> budgets,
                     std::span<const std::uint64_t> sizes, bool growth,
                     const std::function<std::string(const AllocationStudy&)>& replay,
                     const Session& session, const AllocateOptions& options) {
  base.n = sizes.front();
  require_allocations(base, budgets, sizes, growth, options);
  const auto add = [&](const Outcome& part) {
    all.outcome.complete = all.outcome.complete && part.complete;
    all.outcome.interrupted = all.outcome.interrupted || part.interrupted;
    all.outcome.seconds += part.seconds;
  };
  const bool is_shard = session.units && session.units->is_shard();
  std::uint64_t part = 0;
  const auto is_here = [&] { return !session.units || session.units->has_part(part++); };
  for (const std::uint64_t budget : budgets) {
    const std::string setting = "D " + std::to_string(budget);
    for (const std::uint64_t n : sizes) {
      base.n = n;
      if (!is_here()) continue;
      AllocationStudy one = allocate(base, static_cast<int>(budget),
                                     session.part(setting + ", n " + std::to_string(n)), options);
      add(one.outcome);
      std::string again = replay(one);
      all.studies.push_back({std::move(one), std::move(again)});
    }
    if (!growth) continue;
    if (is_shard) {
      add(growth_of_shard(base, static_cast<int>(budget), sizes, session.part(setting), options,
                          is_here));
      continue;
    }
    all.growths.push_back(
        study_growth(base, static_cast<int>(budget), sizes, session.part(setting), options));
    add(all.growths.back().outcome);
  }
}

std::vector<HeadGrowthAt> Allocations::head_growths(std::span<const std::uint64_t> sizes,
                                                    std::uint64_t seed) const {
  std::vector<HeadGrowthAt> all;
  std::vector<const GrowthStudy*> complete;
  for (const GrowthStudy& growth : growths) {
    if (growth.outcome.complete) complete.push_back(&growth);
  }
  if (complete.size() < min_budgets) return all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    all.emplace_back(sizes[i], head_growth(complete, i, seed));
  }
  return all;
}

bool Allocations::is_reached() const {
  return std::ranges::any_of(studies,
                             [](const auto& one) { return is_study_reached(one.study); }) ||
         std::ranges::any_of(growths,
                             [](const GrowthStudy& growth) { return growth.outcome.complete; });
}

std::string allocations_table(const std::string& name, const Allocations& all,
                              const std::vector<HeadGrowthAt>& heads, const std::string& again) {
  const auto replay = [](const std::string& command) {
    return command.empty() ? "\n" : "again: " + command + "\n\n";
  };
  std::string text = one_line(name) + "\n";
  for (const ReplayedAllocation& one : all.studies) {
    if (is_study_reached(one.study)) text += allocation_table(one.study) + replay(one.replay);
  }
  for (const GrowthStudy& growth : all.growths) text += growth_table(growth);
  text += head_growth_table(heads);
  if (!all.growths.empty()) text += replay(again);
  return text + duration_text(all.outcome.seconds) + "\n± is one Monte Carlo standard error\n";
}

}  // namespace headlab::tools
