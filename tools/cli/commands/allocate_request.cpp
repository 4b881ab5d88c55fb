// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/allocate_request.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <string>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/scenario/law_reader.h"
#include "tools/cli/commands/allocate_by_theory.h"
#include "tools/cli/options.h"
#include "validation/allocation/growth_study.h"

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

/// Throws InvalidInput where a scenario sweeps what allocate does not choose by itself.
void require_one_setting(const Scenario& scenario, BandwidthRule rule) {
  std::vector<std::string> chosen = {"heads.count", "heads.dim", "data.n"};
  if (rule != BandwidthRule::fixed) {
    chosen.insert(chosen.end(), {"heads.kernel.bandwidth", "heads.kernel.temperature"});
  }
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
  std::vector<std::string> own = {"heads.count", "heads.dim", "data.n", "run.seed"};
  if (std::ranges::any_of(rules, [](BandwidthRule r) { return r != BandwidthRule::fixed; })) {
    own.insert(own.end(), {"heads.kernel.bandwidth", "heads.kernel.temperature"});
  }
  for (const std::string& key : scenario.swept) {
    if (std::ranges::find(own, key) == own.end()) continue;
    throw InvalidInput(scenario.file + ": sweep: varies " + key +
                       ", which a map sets by itself - take it out of the sweep");
  }
}

}  // namespace

AllocateRequest allocate_request(const AllocateArguments& arguments) {
  AllocateRequest request{.rules = rules_of(arguments.rule)};
  request.options.rule = request.rules.front();
  if (arguments.run.replicates) {
    request.options.replicates = parse_replicates(*arguments.run.replicates);
  }
  if (!arguments.budget) throw InvalidInput("allocate: no budget given - write --budget D");
  request.theory = theory_mean(arguments);
  request.budgets =
      numbers_of("--budget", *arguments.budget,
                 request.theory == TheoryMean::population ? max_theory_budget : max_budget);
  if (arguments.n) request.sizes = numbers_of("--n", *arguments.n, max_points);
  if (arguments.dims) {
    if (request.theory || arguments.map || arguments.growth) {
      throw InvalidInput("--dims: is for a selection by simulation - leave out " +
                         std::string(request.theory  ? "--source " + arguments.source
                                     : arguments.map ? "--map"
                                                     : "--growth"));
    }
    for (const std::uint64_t k : numbers_of("--dims", *arguments.dims, max_budget)) {
      request.options.dims.push_back(static_cast<int>(k));
    }
  }
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
    require_map(scenario, request.rules, request.sizes);
    return;
  }
  if (request.rules.size() > 1) {
    throw InvalidInput("--bandwidth-rule " + arguments.rule +
                       ": names several rules, which --map compares - name one");
  }
  const bool keeps = arguments.run.shard || arguments.run.resume;
  if (arguments.run.out && !keeps) {
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
