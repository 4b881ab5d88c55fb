// SPDX-License-Identifier: Apache-2.0
#include "tools/table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <variant>

#include "tools/columns.h"
#include "tools/figure_text.h"

namespace headlab::tools {
namespace {

constexpr const char* meaning_of_error = "± is one Monte Carlo standard error\n";
constexpr std::size_t bar_width = 20;

/// Lists the parameters of a kernel: "bandwidth 0.5".
struct ParameterText {
  std::string text;
  template <class... Rest>
  void required(const char* key, double number, const Rest&...) {
    text += std::string(text.empty() ? "" : ", ") + key + " " + number_text(number);
  }
  template <class... Rest>
  void optional(const char* key, double number, const Rest&... rest) {
    required(key, number, rest...);
  }
};

std::string kernel_text(const Plan& plan) {
  return std::visit(
      [](auto law) {
        ParameterText parameters;
        law.parameters(parameters);
        return law.name + std::string(" kernel") +
               (parameters.text.empty() ? "" : " (" + parameters.text + ")");
      },
      plan.kernel);
}

std::string replicates_text(const ConditionResult& condition) {
  const std::string done = std::to_string(condition.estimates.replicates);
  if (condition.estimates.replicates == condition.scenario.replicates) return done;
  return done + " of " + std::to_string(condition.scenario.replicates);
}

using Describe = std::function<std::string(const ConditionResult&)>;

/// Those of the texts that are the same for every condition, with commas between.
std::string common(const RunResult& result, const std::vector<Describe>& texts) {
  std::string line;
  for (const Describe& text : texts) {
    const std::string first = text(result.conditions.front());
    const bool same = std::all_of(result.conditions.begin(), result.conditions.end(),
                                  [&](const ConditionResult& c) { return text(c) == first; });
    if (same) line += (line.empty() ? "" : ", ") + first;
  }
  return line;
}

/// What the conditions are: a line on the heads and a line on the computation.
std::string header(const RunResult& result) {
  if (result.conditions.empty()) return "";
  using Condition = const ConditionResult&;
  const std::string heads =
      common(result, {[](Condition c) { return "n " + std::to_string(c.plan.n); },
                      [](Condition c) { return "H " + std::to_string(c.plan.heads); },
                      [](Condition c) { return "d_k " + std::to_string(c.plan.k); },
                      [](Condition c) { return kernel_text(c.plan); }});
  const std::string computation =
      common(result, {[](Condition c) {
                        const bool conditional = c.plan.estimator == Estimator::conditional;
                        return std::string(conditional ? "conditional" : "plain") + " estimator";
                      },
                      [](Condition c) {
                        return std::to_string(c.plan.queries) +
                               (c.plan.queries == 1 ? " query" : " queries");
                      },
                      [](Condition c) { return replicates_text(c) + " replicates"; },
                      [&](Condition) {
                        const bool plain = result.simd.empty() || result.simd == "none";
                        return result.backend + (plain ? "" : "/" + result.simd);
                      }});
  return heads + (heads.empty() ? "" : "\n") + computation + "\n";
}

std::string components_table(const Estimates& estimates) {
  const std::vector<std::pair<std::string, Figure>> rows = {
      {"bias²", estimates.bias_squared},
      {"variance", estimates.variance_term},
      {"covariance", estimates.covariance_term},
      {"sum = MSE", estimates.mse}};
  std::vector<std::string> names, figures, shares, bars;
  for (const auto& [name, figure] : rows) {
    names.push_back(name);
    figures.push_back(figure_text(figure));
    const double share = figure.value / estimates.mse.value;
    const bool known = std::isfinite(share) && estimates.mse.value > 0;
    const long tenths = known ? std::lround(1000 * share) : 0;
    shares.push_back(known ? (tenths < 0 ? "-" : "") + std::to_string(std::labs(tenths) / 10) +
                                 "." + std::to_string(std::labs(tenths) % 10) + " %"
                           : "–");
    bars.push_back(known ? bar(share, bar_width) : "");
  }
  Columns columns;
  columns.add("", names);
  columns.add_figures("", figures);
  columns.add("share", shares, true);
  columns.add("", bars);
  return columns.text("  ");
}

std::string heads_table(const Estimates& estimates) {
  std::vector<std::string> figures = {figure_text(estimates.head_variance_mean),
                                      figure_text(estimates.head_covariance_mean),
                                      figure_text(estimates.output_correlation)};
  Columns columns;
  columns.add("", {"variance V, mean over heads", "covariance C, mean over pairs",
                   "output correlation C/V"});
  columns.add_figures("", figures);
  return columns.text("  ").substr(1);  // without the empty line of headings
}

std::string indices_table(const ConditionIndices& indices) {
  std::vector<std::string> names, figures, ceilings;
  for (const IndexValue& index : indices) {
    names.push_back(index.name);
    const bool exact = !index.simulated && !std::isnan(index.figure.value);
    figures.push_back(exact ? short_number(index.figure.value) : figure_text(index.figure));
    ceilings.push_back(short_number(index.ceiling));
  }
  Columns columns;
  columns.add("diversity index", names);
  columns.add_figures("", figures);
  columns.add("ceiling", ceilings, true);
  return columns.text("  ");
}

/// Windows that held too little weight, where there are any.
std::string windows_text(const RunResult& result) {
  std::uint64_t empty = 0, narrow = 0;
  double all = 0;
  for (const ConditionResult& condition : result.conditions) {
    empty += condition.estimates.windows.empty;
    narrow += condition.estimates.windows.narrow;
    all += static_cast<double>(condition.estimates.replicates) * condition.plan.queries *
           condition.plan.heads;
  }
  auto line = [&](std::uint64_t count, const char* what) {
    if (count == 0) return std::string();
    return "warning: " + std::to_string(count) + " of " + number_text(all) + " windows (" +
           short_number(100 * static_cast<double>(count) / all) + " %) held " + what + "\n";
  };
  return line(empty, "no weight") + line(narrow, "fewer than two effective points");
}

std::string speed_text(const RunResult& result) {
  double seconds = 0, weights = 0;
  for (const ConditionResult& condition : result.conditions) {
    seconds += condition.seconds;
    if (std::isfinite(condition.weights_per_second)) {
      weights += condition.weights_per_second * condition.seconds;
    }
  }
  std::string text = duration_text(seconds);
  if (seconds > 0) text += ", " + short_number(weights / seconds) + " kernel weights a second";
  return text + "\n";
}

std::string footer(const RunResult& result) {
  return "\n" + windows_text(result) + speed_text(result) + meaning_of_error;
}

std::string single_table(const ConditionResult& condition, const ConditionIndices& indices) {
  const Estimates& estimates = condition.estimates;
  std::string text = components_table(estimates);
  if (std::holds_alternative<DesignQueries>(condition.scenario.queries) &&
      !std::isnan(estimates.mse_query_se)) {
    text += "  (over the queries drawn, the standard error of the MSE is " +
            short_number(estimates.mse_query_se) + ")\n";
  }
  text += "\n" + heads_table(estimates);
  if (!indices.empty()) text += "\n" + indices_table(indices);
  return text;
}

/// The last part of a dotted key where that names one swept key only, else the whole key.
std::string heading_of(const std::string& key, const std::vector<std::string>& keys) {
  auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  const auto same = std::count_if(
      keys.begin(), keys.end(), [&](const std::string& other) { return last(other) == last(key); });
  return same == 1 ? last(key) : key;
}

std::string sweep_table(const Study& study, const RunResult& result) {
  const auto& conditions = result.conditions;
  Columns columns;
  for (std::size_t s = 0; s < study.swept.size(); ++s) {
    std::vector<std::string> values;
    for (const ConditionResult& condition : conditions) {
      values.push_back(condition.scenario.swept.at(s));
    }
    columns.add(heading_of(study.swept[s], study.swept), values, true);
  }
  const std::vector<std::pair<std::string, Figure Estimates::*>> figures = {
      {"bias²", &Estimates::bias_squared},
      {"variance", &Estimates::variance_term},
      {"covariance", &Estimates::covariance_term},
      {"MSE", &Estimates::mse},
      {"correlation C/V", &Estimates::output_correlation}};
  for (const auto& [heading, figure] : figures) {
    std::vector<std::string> cells;
    for (const ConditionResult& condition : conditions) {
      cells.push_back(figure_text(condition.estimates.*figure));
    }
    columns.add_figures(heading, cells);
  }
  std::vector<std::string> replicates;
  for (const ConditionResult& condition : conditions) {
    replicates.push_back(replicates_text(condition));
  }
  if (!replicates.empty() && std::count(replicates.begin(), replicates.end(), replicates.front()) !=
                                 static_cast<std::ptrdiff_t>(replicates.size())) {
    columns.add("replicates", replicates, true);
  }
  return columns.text("  ");
}

}  // namespace

std::string result_table(const Study& study, const RunResult& result,
                         const std::vector<ConditionIndices>& indices) {
  std::string text = study.conditions.empty() ? "" : one_line(study.conditions.front().name) + "\n";
  text += header(result) + "\n";
  if (result.conditions.empty()) return text + "  nothing was simulated\n";
  if (study.swept.empty() && result.conditions.size() == 1) {
    text += single_table(result.conditions.front(),
                         indices.empty() ? ConditionIndices{} : indices.front());
  } else {
    text += sweep_table(study, result);
  }
  return text + footer(result);
}

}  // namespace headlab::tools
