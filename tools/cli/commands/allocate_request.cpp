// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <sstream>
#include <string>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/commands/allocate.h"
#include "validation/allocation/growth_study.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_points = (std::uint64_t{1} << 40) - 1;

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

/// What allocate sets by itself; the kernel's width too where the rule is not the fixed one.
Texts chosen_keys(bool fixed_rule) {
  Texts keys = {"heads.count", "heads.dim", "data.n"};
  if (!fixed_rule) keys.insert(keys.end(), {"heads.kernel.bandwidth", "heads.kernel.temperature"});
  return keys;
}

/// Throws InvalidInput where a scenario sweeps what allocate does not choose by itself.
void require_one_setting(const Scenario& scenario, BandwidthRule rule) {
  const Texts chosen = chosen_keys(rule == BandwidthRule::fixed);
  for (const std::string& key : scenario.swept) {
    if (std::ranges::find(chosen, key) != chosen.end()) continue;
    const bool map_sets_it = key == "run.seed";
    throw InvalidInput(scenario.file + ": sweep: varies " + key +
                       ", but allocate takes one value of it (allowed: " + listed(chosen) +
                       ", which it sets by itself) - give it one value" +
                       (map_sets_it ? "" : ", or map the settings with --map"));
  }
}

/// Throws InvalidInput where no growth can be fitted over these budgets and n.
void require_growth(const Condition& base, std::span<const std::uint64_t> budgets,
                    std::span<const std::uint64_t> sizes) {
  if (sizes.size() < min_sizes && budgets.size() < min_budgets) {
    throw InvalidInput(
        "--growth: needs four n or more, or three budgets - write --n 100,300,1000,3000");
  }
  if (base.fixed_design) {
    throw InvalidInput(
        "--growth: with data.fixed_design = true nothing is random that could say how sure a fit "
        "is - write --set data.fixed_design=false");
  }
}

/// Throws InvalidInput where a map has too few n, or the sweep varies what it varies itself.
void require_map(const Scenario& scenario, std::span<const BandwidthRule> rules,
                 std::span<const std::uint64_t> sizes) {
  if (sizes.size() < min_sizes) {
    throw InvalidInput("--map: needs four n or more - write --n 100,300,1000,3000");
  }
  const bool fixed =
      std::ranges::all_of(rules, [](BandwidthRule r) { return r == BandwidthRule::fixed; });
  Texts own = chosen_keys(fixed);
  own.emplace_back("run.seed");
  for (const std::string& key : scenario.swept) {
    if (std::ranges::find(own, key) == own.end()) continue;
    throw InvalidInput(scenario.file + ": sweep: varies " + key +
                       ", which a map sets by itself - take it out of the sweep");
  }
}

/// What the theory that is asked for is the mean over, none for a simulation. Throws InvalidInput,
/// naming --source, for options that theory has no use for.
std::optional<TheoryMean> theory_mean(const AllocateArguments& arguments) {
  if (arguments.source == "simulation") return std::nullopt;
  const std::string source = "--source " + arguments.source;
  const auto reject = [&](const std::string& option) {
    throw InvalidInput(source + ": simulates nothing, so that " + option +
                       " means nothing - leave it out, or write --source simulation");
  };
  if (arguments.growth) {
    throw InvalidInput("--growth: is about simulations; " + source +
                       " says by itself how the best dimension grows - leave it out");
  }
  if (arguments.replicates) reject("--replicates");
  if (arguments.backend != "auto") reject("--backend");
  return arguments.source == "theory" ? TheoryMean::population : TheoryMean::condition;
}

}  // namespace

void AllocateArguments::list(Options& options) {
  options.text(
      "--data", "SCENARIO.toml",
      "The scenario that says what is to be learned, and by which kernel; - is standard input",
      scenario);
  options.text("--budget", "D", "Dimensions of all heads together, H d_k <= D; or several: 8,16,32",
               budget);
  options.value(
      "--dims", "K", "Dimensions of a head to choose from: 16,32,64; the default is all",
      [this](const std::string& text) { dims = parse_numbers("--dims", text, max_budget); });
  options.value(
      "--n", "N", "Training points, instead of the scenario's; or several: 100,1000",
      [this](const std::string& text) { sizes = parse_numbers("--n", text, max_points); });
  options.value("--bandwidth-rule", "RULE",
                "fixed (the default: the scenario's), sqrt_dim, rate or tuned; of a map several",
                [this](const std::string& text) { rules = rules_of(text); },
                {"fixed", "sqrt_dim", "rate", "tuned"});
  options.flag("--growth",
               "Say how the best dimension grows with n, or the best H with D: four n or more, or "
               "three budgets",
               growth);
  options.flag("--map", "Say so for every setting of the scenario's sweep, rule and budget", map);
  take(options, {{"--out", "Folder for the map, map.nc and map.json; made if it is not there"},
                 "--overwrite"});
  options.word("--source", "SOURCE",
               "simulation (the default), exact: the same without Monte Carlo error, or theory: "
               "the mean over queries and truths, n up to 1e12",
               source, {"simulation", "theory", "exact"});
  take(options, {"--set",
                 {"--json", "Write the advice to a file, or - for standard output"},
                 "--report",
                 "--table"});
  take(options, units);
  take(options, {"--backend",
                 "--simd",
                 "--threads",
                 "--seed",
                 {"--replicates", "Most training sets of an allocation; the default is 65536"},
                 "--max-time",
                 "--quiet"});
}

std::string rules_text(const std::vector<BandwidthRule>& rules) {
  std::string text;
  for (const BandwidthRule rule : rules)
    text += (text.empty() ? "" : ",") + std::string(rule_name(rule));
  return text;
}

std::string again_text(const AllocateArguments& arguments, const std::string& form,
                       const std::string& budget, const std::string& n, const std::string& rule,
                       const std::string& rest) {
  std::string text = "headlab allocate" + form + " --data " + shell_word(arguments.scenario) +
                     " --budget " + budget + " --n " + n + " --bandwidth-rule " + rule + rest;
  for (const std::string& set : arguments.sets) text += " --set " + shell_word(set);
  return text;
}

AllocateRequest allocate_request(const AllocateArguments& arguments) {
  AllocateRequest request{.sizes = arguments.sizes};
  request.options.rule = arguments.rules.front();
  if (arguments.replicates) request.options.replicates = *arguments.replicates;
  if (!arguments.budget) throw InvalidInput("allocate: no budget given - write --budget D");
  request.theory = theory_mean(arguments);
  request.budgets =
      parse_numbers("--budget", *arguments.budget,
                    request.theory == TheoryMean::population ? max_theory_budget : max_budget);
  if (!arguments.dims.empty() && (request.theory || arguments.map || arguments.growth)) {
    throw InvalidInput("--dims: is for a selection by simulation - leave out " +
                       std::string(request.theory  ? "--source " + arguments.source
                                   : arguments.map ? "--map"
                                                   : "--growth"));
  }
  request.options.dims.assign(arguments.dims.begin(), arguments.dims.end());
  return request;
}

void complete_request(AllocateRequest& request, const AllocateArguments& arguments,
                      const Scenario& scenario) {
  if (arguments.map) {
    if (request.theory) {
      throw InvalidInput("--map: is about simulations - leave out --source " + arguments.source);
    }
    for (const Condition& condition : scenario.conditions) {
      require_any_size(condition);
      for (const std::uint64_t n : request.sizes) require_points_for(condition, n);
    }
    require_map(scenario, arguments.rules, request.sizes);
    return;
  }
  if (arguments.rules.size() > 1) {
    throw InvalidInput("--bandwidth-rule " + rules_text(arguments.rules) +
                       ": names several rules, which --map compares - name one");
  }
  const bool keeps = arguments.shard || arguments.resume;
  if (arguments.out && !keeps) {
    throw InvalidInput(
        "--out: is for --map, and for what --shard and --resume keep - write --json FILE");
  }
  const Condition& base = scenario.conditions.front();
  require_any_size(base);
  require_one_setting(scenario, request.options.rule);
  if (request.sizes.empty()) {
    if (std::ranges::find(scenario.swept, "data.n") != scenario.swept.end()) {
      throw InvalidInput("allocate: " + scenario.file + " sweeps data.n - write --n N");
    }
    request.sizes = {base.n};
  }
  for (const std::uint64_t n : request.sizes) require_points_for(base, n);
  if (arguments.growth) require_growth(base, request.budgets, request.sizes);
}

}  // namespace headlab::tools
