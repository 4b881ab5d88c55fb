// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/allocate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "engine/scenario/law_reader.h"
#include "tools/cli/characters.h"
#include "tools/cli/columns.h"
#include "tools/cli/commands/allocate_by_theory.h"
#include "tools/cli/commands/allocate_map.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/growth_text.h"
#include "tools/cli/kept_units.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/scenario_argument.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/supervise.h"
#include "tools/cli/text_width.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"
#include "tools/report/write_report.h"
#include "validation/allocation/allocation_json.h"
#include "validation/allocation/theory_study.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_points = (std::uint64_t{1} << 40) - 1;

/// The whole numbers of "8,16,32", ascending; throws InvalidInput, naming `option`.
std::vector<std::uint64_t> numbers_of(const std::string& option, const std::string& text,
                                      std::uint64_t high) {
  std::vector<std::uint64_t> numbers;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const std::uint64_t number = parse_whole_number(option, part, 1, high);
    if (std::ranges::find(numbers, number) != numbers.end()) {
      throw InvalidInput(option + ": names " + part + " twice");
    }
    numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// The rules of "fixed,tuned"; throws InvalidInput, naming --bandwidth-rule.
std::vector<BandwidthRule> rules_of(const std::string& text) {
  std::vector<BandwidthRule> rules;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const BandwidthRule rule = find_rule(part);
    if (std::ranges::find(rules, rule) != rules.end()) {
      throw InvalidInput("--bandwidth-rule: names " + part + " twice");
    }
    rules.push_back(rule);
  }
  return rules;
}

/// The command that gives the same bits again, on this backend and SIMD target; with `all` that of
/// all that was asked.
std::string replay(const AllocateArguments& arguments, const AllocationStudy& study,
                   std::uint64_t replicates, bool all = false) {
  const std::string budget = all ? *arguments.budget : std::to_string(study.budget);
  const std::string n = all && arguments.n ? *arguments.n : std::to_string(study.n);
  std::string command = "headlab allocate --data " + shell_word(arguments.run.scenario) +
                        " --budget " + budget + " --n " + n + " --bandwidth-rule " +
                        rule_name(study.rule) + (all && arguments.growth ? " --growth" : "") +
                        " --seed " + std::to_string(study.seed) + " --replicates " +
                        std::to_string(replicates) + " --backend " + study.machine.backend;
  if (arguments.dims) command += " --dims " + *arguments.dims;
  for (const std::string& set : arguments.run.sets) command += " --set " + shell_word(set);
  return command;
}

std::string setting_text(const AllocationStudy& study) {
  return "D " + std::to_string(study.budget) + ", n " + std::to_string(study.n);
}

/// The best number of heads over the budgets, at each n.
std::vector<HeadGrowthAt> head_growths(const std::vector<GrowthStudy>& growths,
                                       const std::vector<std::uint64_t>& sizes,
                                       std::uint64_t seed) {
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

/// All that was asked for.
struct Allocations {
  std::vector<ReplayedAllocation> studies;
  std::vector<GrowthStudy> growths;
  Outcome outcome;

  void add(const Outcome& part) {
    outcome.complete = outcome.complete && part.complete;
    outcome.interrupted = outcome.interrupted || part.interrupted;
    outcome.seconds += part.seconds;
  }
};

/// Simulates what a shard has of the growth under one budget.
void simulate_growth_shard(Allocations& all, const Condition& base, int budget,
                           const std::vector<std::uint64_t>& sizes, const Session& session,
                           const AllocateOptions& options, const std::function<bool()>& is_here) {
  require_growth(sizes, options);
  const Stopwatch watch;
  bool complete = true;
  try {
    for (const std::uint64_t n : sizes) {
      if (is_here()) simulate_growth_point(base, budget, n, session, options);
    }
  } catch (const TimeIsUp&) {
    complete = false;
  }
  all.add(session.outcome(complete, watch));
}

void simulate_all(Allocations& all, const AllocateArguments& arguments, Condition base,
                  const std::vector<std::uint64_t>& budgets,
                  const std::vector<std::uint64_t>& sizes, const Session& session,
                  const AllocateOptions& options) {
  std::uint64_t part = 0;
  const auto is_here = [&] { return !session.units || session.units->has_part(part++); };
  for (const std::uint64_t budget : budgets) {
    const std::string setting = "D " + std::to_string(budget);
    for (const std::uint64_t n : sizes) {
      base.n = n;
      if (!is_here()) continue;
      AllocationStudy one = allocate(base, static_cast<int>(budget),
                                     session.part(setting + ", n " + std::to_string(n)), options);
      all.add(one.outcome);
      const std::string again = replay(arguments, one, options.replicates);
      all.studies.push_back({std::move(one), again});
    }
    if (!arguments.growth) continue;
    if (session.units && session.units->is_shard()) {
      simulate_growth_shard(all, base, static_cast<int>(budget), sizes, session.part(setting),
                            options, is_here);
      continue;
    }
    all.growths.push_back(
        study_growth(base, static_cast<int>(budget), sizes, session.part(setting), options));
    all.add(all.growths.back().outcome);
  }
}

bool is_reached(const AllocationStudy& study) {
  return std::ranges::any_of(study.rows,
                             [](const AllocationRow& row) { return row.replicates > 0; });
}

/// True where there is something to show.
bool is_reached(const Allocations& all) {
  return std::ranges::any_of(all.studies, [](const auto& one) { return is_reached(one.study); }) ||
         std::ranges::any_of(all.growths,
                             [](const GrowthStudy& growth) { return growth.outcome.complete; });
}

/// Leaves out what time did not allow to begin.
std::string table(const std::string& name, const Allocations& all,
                  const std::vector<HeadGrowthAt>& heads, const std::string& again) {
  std::string text = one_line(name) + "\n";
  for (const ReplayedAllocation& one : all.studies) {
    if (!is_reached(one.study)) continue;
    text += allocation_table(one.study) + "again: " + one.replay + "\n\n";
  }
  for (const GrowthStudy& growth : all.growths) text += growth_table(growth);
  text += head_growth_table(heads);
  if (!all.growths.empty()) text += "again: " + again + "\n\n";
  return text + duration_text(all.outcome.seconds) + "\n± is one Monte Carlo standard error\n";
}

}  // namespace

void require_one_setting(const Scenario& scenario, BandwidthRule rule) {
  std::vector<std::string> chosen = {"heads.count", "heads.dim", "data.n"};
  if (rule != BandwidthRule::fixed) {
    chosen.insert(chosen.end(), {"heads.kernel.bandwidth", "heads.kernel.temperature"});
  }
  for (const std::string& key : scenario.swept) {
    if (std::ranges::find(chosen, key) != chosen.end()) continue;
    throw InvalidInput(
        scenario.file + ": sweep: varies " + key +
        ", but allocate takes one value of it (allowed: " + listed(chosen) +
        ", which it sets by itself) - give it one value, or map the settings with --map");
  }
}

std::string allocation_table(const AllocationStudy& study) {
  const bool softmax = std::holds_alternative<SoftmaxKernel>(study.rows.front().kernel);
  std::vector<std::string> heads, dims, laws, widths, replicates, best;
  std::vector<Estimate> errors;
  for (const AllocationRow& row : study.rows) {
    heads.push_back(std::to_string(row.heads));
    dims.push_back(std::to_string(row.k));
    laws.push_back(row.subspaces);
    widths.push_back(short_number(kernel_width(row.kernel)));
    errors.push_back(row.mse);
    replicates.push_back(std::to_string(row.replicates));
    best.push_back(row.in_best_set ? "yes" : "no");
  }
  if (study.advised) best[*study.advised] += ", advised";
  Columns columns;
  columns.add_key("H", heads, true);
  columns.add_key("d_k", dims, true);
  columns.add("heads", laws);
  columns.add(softmax ? "temperature" : "bandwidth", widths, true);
  columns.add_figures("MSE", errors);
  columns.add("replicates", replicates, true);
  columns.add("may be best", best);
  const std::string kernel =
      std::visit([](const auto& law) { return std::string(law.name); }, study.rows.front().kernel);
  std::string text =
      setting_text(study) + ", " + kernel + " kernel, rule " + rule_name(study.rule) + ", " +
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

ExitCode command_allocate(const AllocateArguments& arguments) {
  Session session = session_of(arguments.run);
  const std::vector<BandwidthRule> rules = rules_of(arguments.rule);
  AllocateOptions options{.rule = rules[0]};
  if (arguments.run.replicates) options.replicates = parse_replicates(*arguments.run.replicates);
  if (arguments.run.scenario.empty()) {
    throw InvalidInput(
        "allocate: no scenario given - write headlab allocate --data SCENARIO.toml --budget D");
  }
  if (!arguments.budget) throw InvalidInput("allocate: no budget given - write --budget D");
  require_out(arguments.run.overwrite, arguments.run.out);
  const std::optional<TheoryMean> theory = theory_mean(arguments);
  const std::vector<std::uint64_t> budgets =
      numbers_of("--budget", *arguments.budget,
                 theory == TheoryMean::population ? max_theory_budget : max_budget);
  std::vector<std::uint64_t> sizes;
  if (arguments.n) sizes = numbers_of("--n", *arguments.n, max_points);
  if (arguments.dims) {
    if (theory || arguments.map || arguments.growth) {
      throw InvalidInput("--dims: is for a selection by simulation - leave out " +
                         std::string(theory          ? "--source " + arguments.source
                                     : arguments.map ? "--map"
                                                     : "--growth"));
    }
    for (const std::uint64_t k : numbers_of("--dims", *arguments.dims, max_budget)) {
      options.dims.push_back(static_cast<int>(k));
    }
  }
  const Scenario scenario = read_supervised(arguments.run.scenario, all_sets(arguments.run),
                                            session, arguments.run.quiet, {.depth = false});
  if (arguments.run.report) {
    require_report_writable("--report", *arguments.run.report, scenario.inputs);
  }
  if (arguments.map) {
    if (theory) {
      throw InvalidInput("--map: is about simulations - leave out --source " + arguments.source);
    }
    for (const Condition& condition : scenario.conditions) {
      require_any_size(condition);
      for (const std::uint64_t n : sizes) require_points_for(condition, n);
    }
    return command_allocate_map(arguments, scenario, rules, budgets, sizes, session, options);
  }
  if (rules.size() > 1) {
    throw InvalidInput("--bandwidth-rule " + arguments.rule +
                       ": names several rules, which --map compares - name one");
  }
  const bool keeps = arguments.run.shard || arguments.run.resume;
  if (arguments.run.out && !keeps) {
    throw InvalidInput(
        "--out: is for --map, and for what --shard and --resume keep - write --json FILE");
  }
  require_any_size(scenario.conditions.front());
  require_one_setting(scenario, options.rule);
  Condition base = scenario.conditions.front();
  if (sizes.empty()) {
    if (std::ranges::find(scenario.swept, "data.n") != scenario.swept.end()) {
      throw InvalidInput("allocate: " + scenario.file + " sweeps data.n - write --n N");
    }
    sizes = {base.n};
  }
  for (const std::uint64_t n : sizes) require_points_for(base, n);
  if (arguments.growth && sizes.size() < min_sizes && budgets.size() < min_budgets) {
    throw InvalidInput(
        "--growth: needs four n or more, or three budgets - write --n 100,300,1000,3000");
  }
  if (arguments.growth && !theory && base.fixed_design) {
    throw InvalidInput(
        "--growth: with data.fixed_design = true nothing is random that could say how sure a fit "
        "is - write --set data.fixed_design=false");
  }
  const std::optional<std::string>& json = arguments.run.json;
  if (json && *json != "-") require_json_writable(*json, scenario.inputs);
  const std::optional<std::string>& report = arguments.run.report;
  if (theory) {
    if (keeps) {
      throw InvalidInput(std::string(arguments.run.shard ? "--shard" : "--resume") +
                         ": is about simulations - leave out --source " + arguments.source);
    }
    return allocate_by_theory(arguments, *theory, base, options.rule, budgets, sizes,
                              session.threads);
  }

  std::optional<OutputFolder> folder;
  if (arguments.run.out) folder.emplace(*arguments.run.out);
  std::vector<std::string> parts = fingerprints_of(scenario);
  parts.insert(parts.end(), {arguments.rule, *arguments.budget, arguments.n.value_or(""),
                             arguments.dims.value_or(""), std::to_string(options.replicates),
                             arguments.growth ? "growth" : ""});
  KeptUnits kept(arguments.run, folder ? &*folder : nullptr, "allocate", parts, session);

  const Allocations all = supervise(session, arguments.run, show_stage, [&](auto& display) {
    Allocations so_far;
    try {
      simulate_all(so_far, arguments, base, budgets, sizes, session, options);
    } catch (...) {
      display.finish("");
      // What came before the setting that failed is not lost.
      if (json && *json != "-" && !so_far.studies.empty()) {
        write_files({{*json, allocation_json(so_far.studies, provenance(), so_far.growths)}},
                    arguments.run.quiet);
      }
      throw;
    }
    return so_far;
  });

  if (kept.is_shard()) return kept.end_shard(all.outcome);

  const std::vector<HeadGrowthAt> heads = head_growths(all.growths, sizes, base.seed);
  const bool reached = is_reached(all);
  const std::string again = replay(arguments, all.studies[0].study, options.replicates, true);
  std::string text;
  if (json || report) {
    text = allocation_json(all.studies, provenance(), all.growths, heads, again);
  }
  // Files first: they are there whatever reads the output. Like `run`, a command that has nothing
  // to keep leaves an earlier file.
  std::vector<TextFile> files;
  if (json && *json != "-") files.emplace_back(*json, text);
  if (report) files.emplace_back(*report, report_page({source_of_document(text)}));
  if (reached) write_files(files, arguments.run.quiet);
  kept.end(all.outcome);
  if (json == "-") {
    std::cout << text;
  } else if (reached) {
    std::cout << shown(table(base.name, all, heads, again));
  }
  finish_standard_output();
  return ended(all.outcome, reached ? "what was not reached is unfinished" : "nothing was reached");
}

}  // namespace headlab::tools
