// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/files/toml_advice.h"
#include "engine/moments/figure_name.h"
#include "engine/moments/measures.h"

namespace headlab {
namespace {

/// Names that results.nc and summary.json use for something other than figures.
constexpr std::array taken = {"aims",
                              "bound",
                              "check",
                              "compiler",
                              "complete",
                              "condition",
                              "conditions",
                              "controls",
                              "coordinate",
                              "d",
                              "difference",
                              "dim",
                              "doubtful_measures",
                              "empty_windows",
                              "estimator",
                              "extremes",
                              "few_carriers",
                              "fresh_key_error",
                              "head",
                              "head_2",
                              "head_weights",
                              "heads",
                              "history",
                              "indices",
                              "jackknife_nodes",
                              "k",
                              "layer",
                              "layers",
                              "learned",
                              "moments",
                              "mse_query_se",
                              "n",
                              "narrow_windows",
                              "node",
                              "nodes",
                              "nodes_sha256",
                              "parameters",
                              "plan_sha256",
                              "projections",
                              "queries",
                              "query",
                              "query_projections",
                              "redraw",
                              "replicates",
                              "replicates_planned",
                              "seconds",
                              "seed",
                              "swept",
                              "theory",
                              "truth",
                              "weights_per_second",
                              "x"};
constexpr std::array taken_beginnings = {"difference_", "extreme_", "index_",  "layout_",
                                         "learned_",    "swept_",   "theory_", "x_"};
constexpr std::array taken_ends = {"_ceiling", "_mcse", "_remainder"};

void require_free_name(const Value::Entry& entry, const std::string& key, const Measures& before) {
  const std::string& name = entry.key;
  const auto refuse = [&](const std::string& problem) {
    reject(entry.location, key, problem + " - choose another name");
  };
  if (!may_name_measure(name)) {
    refuse("is not a name for a measure: letters, digits and _, 64 at most, and no function");
  }
  if (std::ranges::count(figure_kinds(), name, &FigureKind::name) > 0) {
    refuse("is the name of a figure");
  }
  const auto same = [&](const char* one) { return name == one; };
  const auto begins = [&](const char* one) { return name.starts_with(one); };
  const auto ends = [&](const char* one) { return name.ends_with(one); };
  if (std::ranges::any_of(taken, same) || std::ranges::any_of(taken_beginnings, begins) ||
      std::ranges::any_of(taken_ends, ends)) {
    refuse("is a name that results.nc has for something else");
  }
  if (std::ranges::count(names_of(before), name) > 0) refuse("stands twice");
}

/// The parts of a formula that have to be away from 0, where they vary.
std::vector<Formula> divisors_of(const Formula& formula) {
  std::vector<Formula> divisors;
  std::vector<std::size_t> begins;  // first steps of what is on the stack
  const auto add = [&](std::size_t begin, std::size_t end) {
    Formula part;
    part.names = formula.names;
    for (std::size_t i = begin; i < end; ++i) part.steps.push_back(formula.steps[i]);
    const auto varies = [](const Formula::Step& step) {
      return step.operation == FormulaOperation::variable;
    };
    if (std::ranges::any_of(part.steps, varies)) divisors.push_back(std::move(part));
  };
  for (std::size_t i = 0; i < formula.steps.size(); ++i) {
    const auto& [operation, operand] = formula.steps[i];
    if (operation == FormulaOperation::constant || operation == FormulaOperation::variable) {
      begins.push_back(i);
      continue;
    }
    std::size_t second = i;  // first step of the second operand
    if (is_binary(operation)) {
      second = begins.back();
      begins.pop_back();
    }
    const bool of_first = operation == FormulaOperation::power ||
                          operation == FormulaOperation::log ||
                          operation == FormulaOperation::sqrt ||
                          (operation == FormulaOperation::whole_power && operand < 0);
    if (operation == FormulaOperation::divide) add(second, i);
    if (of_first) add(begins.back(), second);
  }
  return divisors;
}

Measure read_measure(const Value::Entry& entry, const Measures& before) {
  const std::string key = "measures." + entry.key;
  require_free_name(entry, key, before);
  const auto* text = std::get_if<std::string>(&entry.value.data);
  if (text == nullptr) {
    reject(entry.value.location, key,
           kind_problem(entry.value, "a formula as \"covariance_term / mse\"", ValueKind::table));
  }
  Measure measure{.name = entry.key, .text = *text};
  try {
    measure.formula = parse_formula(*text, [](const std::string&) { return std::nullopt; });
  } catch (const FormulaError& error) {
    reject(entry.value.location, key, error.what());
  }
  if (measure.formula.names.empty()) {
    reject(entry.value.location, key, "has no figure in its formula");
  }
  const std::string option = entry.value.location.text() + ": " + key;
  for (const std::string& name : measure.formula.names) {
    measure.parts.push_back(parse_figure(option, name, names_of(before)));
  }
  measure.divisors = divisors_of(measure.formula);
  return measure;
}

}  // namespace

Measures read_measures(const Value& scenario) {
  Measures measures;
  const Value* table = scenario.find("measures");
  if (table == nullptr) return measures;
  const auto* members = std::get_if<Value::Members>(&table->data);
  if (members == nullptr) {
    reject(
        table->location, "measures",
        kind_problem(*table, "a table of formulas as covariance_share = \"covariance_term / mse\"",
                     ValueKind::table));
  }
  for (const Value::Entry& entry : *members) {
    measures.push_back(std::make_shared<const Measure>(read_measure(entry, measures)));
  }
  return measures;
}

}  // namespace headlab
