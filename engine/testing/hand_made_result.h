// SPDX-License-Identifier: Apache-2.0
/// \file Results with numbers made up, for tests of what is written of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/provenance.h"
#include "engine/results/computed.h"
#include "engine/run/run.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"

namespace headlab::hand_made {

inline const std::string scenario_text = R"([scenario]
name = "hand made ± \"quoted\""
aims = "try the writers"
[data]
n = 20
design = { law = "normal", dim = 4 }
regression = { law = "linear", coefficients = [1.0, 0.0, 0.0, 0.0] }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 2
dim = 1
subspaces = { law = "orthogonal" }
kernel = { law = "gaussian", bandwidth = 0.5 }
[queries]
law = "points"
points = [[0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]]
[run]
seed = 7
replicates = 1000
)";

inline const Provenance program = {"9.8.7", "abc1234", "GCC 1.2.3", "release"};

/// A condition of which `replicates` were simulated, with moments that look like anything but
/// round numbers.
inline ConditionResult condition_result(const Condition& condition, std::uint64_t replicates) {
  Plan plan = make_plan(condition);
  const MomentLayout layout = plan.kept_layout();
  MomentTree tree(layout);
  std::uint64_t draw = 1;
  while (tree.count() < replicates) {
    const std::uint64_t left = replicates - tree.count();
    const std::uint64_t node = tree.count() < first_leaf_of(layout) ? 1 : leaf_replicates;
    const int count = static_cast<int>(std::min(node, left));
    const int vectors = layout.per_draw ? 1 : count;  // of statistics
    std::vector<double> statistics(static_cast<std::size_t>(vectors) * layout.statistics());
    for (double& number : statistics)
      number = 0.3 + 0.1 * std::sin(std::sqrt(2.0) * double(draw++));
    Moments moments;
    if (layout.per_draw) {
      moments = {.count = leaf_replicates, .mean = statistics, .comoment = {}, .windows = {}};
    } else {
      leaf_moments(layout, statistics, count, moments);
    }
    moments.windows = {draw % 3, draw % 5};
    tree.append(std::move(moments));
  }
  ConditionEstimates estimates = estimate(tree, plan);
  return {std::make_shared<const Condition>(condition),
          {},
          std::move(plan),
          std::move(tree),
          std::move(estimates),
          1.25,
          1e6};
}

/// Results of every condition of a scenario.
inline RunResult result(const Scenario& scenario, std::uint64_t replicates = 1000) {
  RunResult made;
  made.machine = {.backend = "cpu", .simd = "AVX2", .device = "a processor", .threads = 3};
  made.outcome.complete = replicates == 1000;
  for (const Condition& condition : scenario.conditions) {
    made.conditions.push_back(condition_result(condition, replicates));
  }
  return made;
}

/// One index known exactly, one undefined and one simulated, for every condition.
inline std::vector<ConditionIndices> indices(const RunResult& made) {
  const double undefined = std::nan("");
  std::vector<ConditionIndices> all;
  for (const ConditionResult& one : made.conditions) {
    all.push_back({{.name = "chordal", .figure = {.value = 0.75}, .upper_bound = 1.0},
                   {.name = "qk", .figure = {}, .upper_bound = undefined},
                   {.name = "output",
                    .figure = one.estimates.output_index,
                    .upper_bound = 2.0,
                    .simulated = true}});
  }
  return all;
}

inline Scenario scenario(const std::vector<std::string>& sets = {}, const std::string& more = "") {
  return parse_scenario(scenario_text + more, "hand_made.toml", sets);
}

/// `text` with other lines, each in place of the one that gives the same key.
inline std::string with_lines(std::string text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::size_t at = text.find('\n' + line.substr(0, line.find('=') + 1)) + 1;
    text.replace(at, text.find('\n', at) - at, line);
  }
  return text;
}

/// The same in a plane.
inline Scenario plane(const std::vector<std::string>& sets = {}, const std::string& more = "",
                      const std::vector<std::string>& lines = {}) {
  const std::string text = with_lines(scenario_text, {"design = { law = \"normal\", dim = 2 }",
                                                      "regression = { law = \"linear\", "
                                                      "coefficients = [1, 0] }",
                                                      "points = [[0, 0], [0.5, 0]]", "seed = 3"});
  return parse_scenario(with_lines(text, lines) + more, "hand_made.toml", sets);
}

}  // namespace headlab::hand_made
