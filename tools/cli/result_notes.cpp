// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/result_notes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/files/document.h"
#include "engine/files/table_file.h"
#include "engine/files/words.h"
#include "engine/moments/measures.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/mechanism/mechanism.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/counted.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

/// True where some head sees one token, or keeps one weight, whatever is drawn.
bool has_single_tokens(const Plan& plan) {
  const Mechanism& mechanism = plan.mechanism;
  for (int h = 0; h < plan.heads; ++h) {
    if (mechanism.seen_by(h, plan.n).count() == 1) return true;
    const bool by_rank = !mechanism.keep.off() && mechanism.keep.rule == Keep::Rule::top;
    if (by_rank && !mechanism.keep.shared && mechanism.keep.top[static_cast<std::size_t>(h)] == 1) {
      return true;
    }
  }
  return false;
}

/// Windows that held too little weight, where there are any.
std::string windows_text(const RunResult& result) {
  std::uint64_t empty = 0, narrow = 0;
  bool merged = false, single = false;
  double all = 0;
  for (const ConditionResult& one : result.conditions) {
    empty += one.estimates.windows.empty;
    narrow += one.estimates.windows.narrow;
    if (one.estimates.windows.narrow > 0) {
      merged |= !one.plan.mechanism.merge.off();
      single |= has_single_tokens(one.plan);
    }
    all += static_cast<double>(one.estimates.replicates) * one.plan.queries * one.plan.heads;
  }
  auto line = [&](std::uint64_t count, const std::string& what) {
    if (count == 0) return std::string();
    return "warning: " + grouped(count) + " of " + grouped(static_cast<std::uint64_t>(all)) +
           " windows (" + short_number(100 * static_cast<double>(count) / all) + " %) held " +
           what + "\n";
  };
  return line(empty, "no weight") +
         (empty > 0
              ? "such a head takes the value of the nearest key: its figures are of the nearest "
                "neighbour\n"
              : "") +
         line(narrow, std::string("fewer than two effective ") + (merged ? "tokens" : "points") +
                          (single ? ": some heads see or keep one alone" : ""));
}

/// Heads, queries or both.
struct Drawn {
  bool heads = false, queries = false;

  bool any() const { return heads || queries; }
  std::string text() const {
    return heads && queries ? "heads and queries" : heads ? "heads" : "queries";
  }
};

/// What is drawn at random, and whether standard errors cover the draw.
std::string draws_text(const RunResult& result) {
  Drawn once, covered_if_redrawn, redrawn;
  bool few = false;
  for (const ConditionResult& one : result.conditions) {
    const SubspaceLaw& law = *one.condition->subspaces;
    const QueryLaw& queries = *one.condition->queries;
    redrawn.heads |= redraws(law);
    redrawn.queries |= redraws(queries);
    few |= one.plan.redraws && one.estimates.replicates < min_draws_for_mcse * leaf_replicates;
    const bool learned_once = std::holds_alternative<LearnedSubspaces>(law) && !one.plan.learning;
    once.heads |= learned_once || (redrawable(law) && !redraws(law));
    once.queries |= redrawable(queries) && !redraws(queries);
    if (std::holds_alternative<OptimalWeights>(*one.condition->weights)) continue;
    covered_if_redrawn.heads |= redrawable(law) && !redraws(law);
    covered_if_redrawn.queries |= redrawable(queries) && !redraws(queries);
  }
  std::string text;
  if (redrawn.any()) {
    text = redrawn.text() + " were drawn again for every 8 replicates: standard errors cover " +
           "these draws\n";
  }
  if (few) text += "no standard errors below 16 draws, which take 128 replicates\n";
  if (!once.any()) return text;
  text += once.text() + " were drawn once: standard errors do not cover that draw";
  if (covered_if_redrawn.any()) {
    text += " (they do with redraw = true in ";
    text += covered_if_redrawn.heads ? "heads.subspaces" : "";
    text += covered_if_redrawn.heads && covered_if_redrawn.queries ? " and " : "";
    text += covered_if_redrawn.queries ? "queries" : "";
    text += ")";
  }
  return text + "\n";
}

/// Why a run of few replicates has no standard errors.
std::string few_replicates_text(const RunResult& result) {
  std::uint64_t fewest = min_replicates_for_mcse;
  for (const ConditionResult& one : result.conditions) {
    if (!one.plan.redraws) fewest = std::min(fewest, one.estimates.replicates);
  }
  if (fewest == min_replicates_for_mcse) return "";
  return "no standard errors below " + std::to_string(min_replicates_for_mcse) + " replicates" +
         (fewest == 1 ? ", and no variance between the training sets of one\n" : "\n");
}

/// Where squared biases are so near 0 that their estimates are not normal: there bias² is a square
/// of about one standard error minus its mean.
std::string bias_text(const RunResult& result) {
  constexpr double near = 4;
  const bool any = std::ranges::any_of(result.conditions, [](const ConditionResult& one) {
    const Estimate& bias = one.estimates.bias_squared;
    // A mean over draws is normal.
    return !one.plan.redraws && bias.mcse > 0 && std::abs(bias.value) < near * bias.mcse;
  });
  return any ? "bias² below 4 standard errors is not normal: at 0 the error is 40 % too large, and "
               "2 of them cover 84 %, not 95 %\n"
             : "";
}

/// What few replicates carry of a run.
class RareFigures {
 public:
  /// \param noun "figure", "difference"
  explicit RareFigures(std::string noun) : noun_(std::move(noun)) {}

  void add(const RunResult& result, std::size_t i, const ErrorTerms<Estimate>& terms) {
    for (const RareFigure& rare : rare_figures(terms)) {
      if (count_++ > 0) continue;
      first_ = rare.name;
      if (result.conditions.size() > 1) first_ += " in condition #" + std::to_string(i);
      first_ += " by " + carriers_of(rare.carriers, result.conditions[i].estimates.replicates);
    }
  }
  std::string text() const {
    if (count_ == 0) return "";
    return "warning: " + counted(count_, noun_ + " is", noun_ + "s are") +
           " carried by fewer than " + number_text(enough_carriers) +
           " replicates, and may be further off than standard errors say (" + first_ + ")\n";
  }

 private:
  std::string noun_;
  std::size_t count_ = 0;
  std::string first_;
};

/// What standard errors do not say: figures that too few replicates carry, ratios over noise, and
/// squares without a variance.
/// The largest of the truth and of the biases of estimates.
double largest_signal(const ConditionResult& one) {
  double largest = 0;
  for (const double truth : one.plan.truth) largest = std::max(largest, std::abs(truth));
  for (const QueryEstimates& at : one.estimates.queries) {
    for (const Estimate& bias : at.head_bias) largest = std::max(largest, std::abs(bias.value));
  }
  return largest;
}

std::string doubts_text(const RunResult& result) {
  RareFigures figures("figure"), differences("difference");
  bool heavy = false;
  std::map<std::string, std::size_t> divided;  // ratios by noise, with how often
  std::size_t measured = 0;
  std::string measure;
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const ConditionResult& one = result.conditions[i];
    heavy |= !one.plan.stack && one.plan.bounds.squares_are_heavy();
    for (const NamedNumber<const Estimate>& figure : numbers_of<Estimate>(one.estimates)) {
      if (divides_by_noise(one.estimates, *figure.number)) ++divided[figure.name];
    }
    for (const Measured<Estimate>& of : one.estimates.measures) {
      if (!divides_by_noise(of)) continue;
      if (measured++ == 0) measure = name_of(*of.of) + " in " + numbered_condition(i);
    }
    figures.add(result, i, one.estimates);
    if (one.difference && one.difference->reference != i) {
      differences.add(result, i, one.difference->terms);
    }
  }
  std::string text = figures.text() + differences.text();
  if (result.machine.backend != "reference" &&
      std::ranges::any_of(result.conditions, [](const ConditionResult& one) {
        const double signal = largest_signal(one);
        return signal > 0 && signal < 1e-30;
      })) {
    text +=
        "warning: truth and biases are below 1e-30, where float32 has few digits or none - use "
        "larger units, or --backend reference\n";
  }
  for (const auto& [name, conditions] : divided) {
    text += "warning: " + name + " of " + counted(conditions, "condition") +
            " has a denominator less than 6 standard errors from 0: its standard error says "
            "little\n";
  }
  if (measured > 0) {
    text += "warning: " + counted(measured, "measure has", "measures have") +
            " a denominator less than 6 standard errors from 0, and a standard error that says "
            "little (" +
            measure + ")\n";
  }
  if (heavy) {
    text +=
        "warning: squares of estimates have no variance here, with tails of order 4 or less: "
        "standard errors of MSE, V and C are too small";
    const bool plain = std::ranges::any_of(result.conditions, [](const ConditionResult& one) {
      return one.plan.estimator == Estimator::plain && one.plan.bounds.squares_are_heavy();
    });
    text += plain ? " - use run.estimator = \"conditional\"\n" : "\n";
  }
  return text;
}

/// Whether the targets of a run are met, and how it went on to there.
std::string precision_text(const RunResult& result) {
  if (!result.precision) return "";
  const Precision& precision = *result.precision;
  const std::string targets = until_text(precision.targets);
  if (precision.looks.empty()) return "target " + targets + ": stopped before the first look\n";
  const Look& last = precision.looks.back();
  std::string text = !result.outcome.complete ? "target " + targets + ": stopped before it was met"
                     : precision.met()        ? "target met: " + targets
                                              : "target missed: " + targets;
  text += ", after " + counted(precision.looks.size(), "look") + " at ";
  for (std::size_t i = 0; i < precision.looks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + grouped(precision.looks[i].replicates);
  }
  text += " replicates; ";
  if (last.undefined > 0) {
    text += counted(last.undefined, "figure is", "figures are") + " undefined, the others within ";
  } else {
    text += "the largest MCSE is ";
  }
  text +=
      (std::isfinite(last.ratio) ? short_number(last.ratio) + " of its target ("
                                 : std::string("unknown, since too few replicates carry it (")) +
      precision.targets.at(last.target).figure_text();
  if (result.conditions.size() > 1) text += " in condition #" + std::to_string(last.condition);
  text += ")\n";
  if (!result.outcome.complete || !(last.ratio > 1)) return text;
  const PrecisionTarget& target = precision.targets.at(last.target);
  const ConditionResult& of = result.conditions.at(last.condition);
  const ErrorTerms<Estimate>& terms =
      target.of_difference && of.difference ? of.difference->terms : of.estimates;
  const Estimate* figure = find_figure<Estimate>(terms, target.figure);
  if (figure != nullptr && target.relative && figure->value < denominator_errors * figure->mcse) {
    // How many replicates a share would need is not known of what may be 0.
    const double most = denominator_errors * figure->mcse;
    return text + "these are the most replicates allowed, and " + target.figure_text() +
           " is within " + short_number(denominator_errors) +
           " MCSE of 0, where a share of it measures nothing - give its standard error itself, "
           "as " +
           target.figure_text() + "=" + short_number(target.limit / 100 * most) + "\n";
  }
  if (!std::isfinite(last.ratio)) return text;
  // What too few replicates carry needs so many as carry it.
  double ratio = last.ratio, carried = 1;
  if (figure != nullptr && figure->allowance > 0) {
    ratio = precision_ratio({.value = figure->value, .mcse = figure->mcse}, target);
    carried = enough_carriers / figure->carriers;
  }
  const double needed = static_cast<double>(last.replicates) * std::max(ratio * ratio, carried);
  if (!std::isfinite(needed)) return text;
  return text + "these are the most replicates allowed; about " + count_text(needed, 4) +
         " would be needed\n";
}

/// What controls brought, over all conditions.
std::string controls_text(const RunResult& result) {
  constexpr std::pair<const char*, const char*> shown[] = {{"mse", "MSE"},
                                                           {"bias_squared", "bias²"},
                                                           {"head_variance_mean", "V"},
                                                           {"head_covariance_mean", "C"}};
  std::uint64_t statistics = 0, adjusted = 0, tested = 0;
  bool refused = false, wilder = false;
  for (const ConditionResult& one : result.conditions) {
    if (!one.controls) continue;
    statistics += one.controls->statistics;
    refused = refused || one.controls->refused;
    wilder = wilder || one.controls->wilder;
    if (!one.controls->used()) continue;
    adjusted += one.controls->adjusted;
    tested += one.controls->tested;
  }
  if (statistics == 0) return "";
  std::string left_out;
  if (refused) left_out += "controls: refused - figures are those without controls\n";
  if (wilder) {
    left_out +=
        "controls: left out, because they vary far more in the run than in its pilot - figures are "
        "those without controls\n";
  }
  if (!left_out.empty() && adjusted == 0) return left_out;
  std::string text = "controls: " + grouped(tested) + " of " + grouped(statistics) +
                     " statistics are adjusted" +
                     (tested > 0 ? ", and their adjustments tested" : "");
  if (adjusted > tested) {
    text += "; " + grouped(adjusted - tested) +
            " more could not be tested, or do not pay, with so many replicates";
  }
  std::string gains;
  double smallest = std::numeric_limits<double>::infinity();
  for (const auto& [name, label] : shown) {
    double least = std::numeric_limits<double>::infinity(), largest = 0;
    for (const ConditionResult& one : result.conditions) {
      if (!one.controls || !one.controls->used()) continue;
      for (const auto& [figure, gain] : one.controls->gains) {
        if (figure != name || !std::isfinite(gain)) continue;
        least = std::min(least, gain);
        largest = std::max(largest, gain);
      }
    }
    if (largest == 0) continue;
    smallest = std::min(smallest, least);
    const std::string low = short_number(least), high = short_number(largest);
    gains +=
        (gains.empty() ? "" : ", ") + low + (low == high ? "" : " to " + high) + " for " + label;
  }
  if (!gains.empty() && tested > 0) {
    text += "\ncontrols: the variance falls by a factor of " + gains;
    // A loss of a tenth may be chance.
    if (smallest < 0.9) text += "; below 1 it rises, and controls are better left out";
  }
  return text + "\n" + left_out;
}

/// Stages that no index of subspaces sees.
std::string indices_text(const RunResult& result) {
  std::vector<std::string> stages;
  for (const ConditionResult& one : result.conditions) {
    const Condition& condition = *one.condition;
    if (!any_stage(condition.mechanism)) continue;
    for (const std::string& name :
         stages_of_tokens(condition.mechanism, condition.n, condition.heads, condition.k)) {
      if (std::ranges::find(stages, name) == stages.end()) stages.push_back(name);
    }
  }
  if (stages.empty()) return "";
  return "indices of subspaces (chordal, spectral, overlap, qk) do not see " + listed(stages) +
         "\n";
}

constexpr std::size_t longest_value = 60;

/// True where a sweep changes what stands at `path`, or a part of it.
bool is_swept(const Scenario& scenario, std::string_view path) {
  const auto within = [](std::string_view inner, std::string_view outer) {
    return inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '.');
  };
  return std::ranges::any_of(scenario.swept, [&](const std::string& key) {
    return within(key, path) || within(path, key);
  });
}

/// "4", or "top 32, union true" of a table; the name of a law stands alone.
std::string value_text(const Value& value) {
  const auto* members = std::get_if<Value::Members>(&value.data);
  if (members == nullptr) return one_line(to_toml(value), longest_value);
  std::string text;
  for (const Value::Entry& entry : *members) {
    const auto* law = entry.key == "law" ? std::get_if<std::string>(&entry.value.data) : nullptr;
    text +=
        (text.empty() ? "" : ", ") +
        (law ? one_line(*law) : entry.key + " " + one_line(to_toml(entry.value), longest_value));
  }
  return text;
}

/// "window 128", "window swept"
std::string part_text(const Scenario& scenario, const std::string& name, const std::string& path) {
  if (is_swept(scenario, path)) return name + " swept";
  const Value tree = scenario.conditions.front().parameters.tree();
  const Value* value = value_at(tree, path);
  return name + (value == nullptr ? "" : " " + value_text(*value));
}

}  // namespace

std::string mechanism_text(const Scenario& scenario) {
  bool dependent = false;
  std::vector<std::string> in_force;
  for (const Condition& condition : scenario.conditions) {
    dependent |= !std::visit([](const auto& law) { return law.off(); }, *condition.sequence);
    if (!any_stage(condition.mechanism)) continue;
    for (const std::string& name :
         stages_in_force(condition.mechanism, condition.n, condition.heads, condition.k)) {
      if (std::ranges::count(in_force, name) == 0) in_force.push_back(name);
    }
  }
  std::string text;
  if (dependent) text = part_text(scenario, "sequence", "data.sequence");
  for (const std::string& name : stage_names()) {
    if (std::ranges::count(in_force, name) == 0) continue;
    text += (text.empty() ? "" : "; ") + part_text(scenario, name, "heads.mechanism." + name);
  }
  return text;
}

std::string tables_text(const Scenario& scenario) {
  std::string text;
  for (const std::string& line : tables_read(scenario.inputs)) {
    text += "read " + one_line(line) + "\n";
  }
  return text;
}

std::string speed_text(const RunResult& result) {
  double seconds = 0, weights = 0;
  for (const ConditionResult& one : result.conditions) {
    seconds += one.seconds;
    if (std::isfinite(one.weights_per_second)) {
      weights += one.weights_per_second * one.seconds;
    }
  }
  std::string text = duration_text(seconds);
  if (seconds > 0) text += ", " + count_text(weights / seconds, 3) + " kernel weights a second";
  return text + "\n";
}

std::string difference_text(const RunResult& result) {
  if (result.difference_to.empty()) return "";
  bool paired = false, independent = false, unequal = false;
  for (const ConditionResult& one : result.conditions) {
    if (!one.difference || !one.difference->reference) continue;
    const bool known = one.difference->is_known();
    paired |= one.difference->paired;
    independent |= known && !one.difference->paired;
    unequal |= !known;
  }
  std::string text = "differences from " + result.difference_to;
  if (paired && !independent) text += ", paired: both have the same draws";
  if (independent && !paired) {
    text += ", not paired: seeds differ, and the variances are added";
  }
  if (paired && independent) {
    text += ", paired where both have the same draws; where seeds differ the variances are added";
  }
  return text + (unequal ? "; none for conditions without equally many replicates" : "") + "\n";
}

std::string mcse_line(bool compact) {
  return compact ? "in parentheses: one Monte Carlo standard error, in units of the last digit; a "
                   "heading /1e-3 gives the unit\n"
                 : "± is one Monte Carlo standard error\n";
}

std::string forms_line(const std::vector<ComputedCondition>& theory) {
  std::vector<std::string> forms;
  double normalisation_error = std::numeric_limits<double>::quiet_NaN();
  double seconds = 0;
  for (const ComputedCondition& computed : theory) {
    const TheoryResult& closed = computed.result;
    if (std::ranges::count(forms, closed.form) == 0) forms.push_back(closed.form);
    normalisation_error = std::fmax(normalisation_error, std::abs(closed.normalisation_error));
    seconds += closed.seconds;
  }
  std::string text = "theory: ";
  for (std::size_t i = 0; i < forms.size(); ++i) text += (i == 0 ? "" : "; ") + forms[i];
  if (!std::isnan(normalisation_error)) {
    text += ", weights sum to one within " + short_number(normalisation_error);
  }
  return text + ", " + duration_text(seconds) + "\n";
}

std::string result_notes(const RunResult& result, bool compact) {
  return windows_text(result) + doubts_text(result) + bias_text(result) + precision_text(result) +
         controls_text(result) + difference_text(result) + speed_text(result) + mcse_line(compact) +
         indices_text(result) + few_replicates_text(result) + draws_text(result);
}

}  // namespace headlab::tools
