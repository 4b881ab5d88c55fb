// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <variant>

#include "engine/results/condition_record.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/counted.h"
#include "kernels/kernel_laws.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/layer_table.h"
#include "tools/cli/result_notes.h"

namespace headlab::tools {
namespace {

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
      *plan.kernel);
}

std::string replicates_text(const ConditionResult& one) {
  const std::string done = count_text(static_cast<double>(one.estimates.replicates));
  if (one.estimates.replicates == one.condition->replicates) return done;
  return done + " of " + count_text(static_cast<double>(one.condition->replicates));
}

const Plan& plan_of(const ConditionResult& one) {
  return one.plan;
}
const Plan& plan_of(const ComputedCondition& computed) {
  return *computed.result.plan;
}
const ErrorTerms<Estimate>& terms_of(const ConditionResult& one) {
  return one.estimates;
}
const ErrorTerms<Remainder>& terms_of(const ComputedCondition& computed) {
  return computed.result.figures;
}
std::string text_of(const Estimate& figure) {
  return figure_text(figure);
}
const Estimate& cell_of(const Estimate& figure) {
  return figure;
}
std::string cell_of(const Remainder& figure) {
  return computed_text(figure);
}
std::string text_of(const Remainder& figure) {
  return computed_text(figure);
}

template <class Result>
using Describe = std::function<std::string(const Result&)>;

/// Those of the texts that are the same for every condition, with commas between.
template <class Result>
std::string common(const std::vector<Result>& conditions,
                   const std::vector<Describe<Result>>& texts) {
  std::string line;
  for (const Describe<Result>& text : texts) {
    const std::string first = text(conditions.front());
    const bool same =
        std::ranges::all_of(conditions, [&](const Result& c) { return text(c) == first; });
    if (same) line += (line.empty() ? "" : ", ") + first;
  }
  return line;
}

/// A line on the heads, with its end unless nothing is common to all conditions, and one on what
/// stands between points and heads, if anything does.
template <class Result>
std::string heads_line(const Scenario& scenario, const std::vector<Result>& conditions) {
  using C = const Result&;
  const std::string heads =
      common(conditions, {[](C c) { return "n " + std::to_string(plan_of(c).n); },
                          [](C c) { return "H " + std::to_string(plan_of(c).heads); },
                          [](C c) { return "d_k " + std::to_string(plan_of(c).k); },
                          [](C c) { return kernel_text(plan_of(c)); }});
  const std::string stages = mechanism_text(scenario);
  return heads + (heads.empty() ? "" : "\n") + stages + (stages.empty() ? "" : "\n");
}

template <class Result>
std::string queries_text(const Result& condition) {
  return counted(static_cast<std::uint64_t>(plan_of(condition).queries), "query", "queries");
}

/// What the conditions are: a line on the heads and a line on the simulation.
std::string header(const Scenario& scenario, const RunResult& result) {
  if (result.conditions.empty()) return "";
  using C = const ConditionResult&;
  const auto replicates = [](C c) {
    const std::string text = replicates_text(c);
    return text + (text == "1" ? " replicate" : " replicates");
  };
  const std::string computation =
      common(result.conditions,
             {[](C c) { return std::string(name_of(c.plan.estimator)) + " estimator"; },
              queries_text<ConditionResult>, replicates, [&](C) { return result.machine.text(); }});
  return heads_line(scenario, result.conditions) + computation + "\n";
}

/// Numbers of a list that have one of the roles, role by role.
template <class Number>
std::vector<NamedNumber<const Number>> numbers_with(const ErrorTerms<Number>& terms,
                                                    std::initializer_list<TableRole> roles) {
  std::vector<NamedNumber<const Number>> chosen;
  for (const TableRole role : roles) {
    std::ranges::copy_if(numbers_of<Number>(terms), std::back_inserter(chosen),
                         [&](const auto& number) { return number.text.role == role; });
  }
  return chosen;
}

/// What the error is made of, with shares.
template <class Number>
std::string components_table(const ErrorTerms<Number>& terms) {
  std::vector<std::string> names, figures, shares, bars;
  for (const auto& [name, number, text] :
       numbers_with<Number>(terms, {TableRole::term, TableRole::total})) {
    names.push_back((text.role == TableRole::total ? "sum = " : "") + std::string(text.label));
    figures.push_back(text_of(*number));
    const double share = number->value / terms.mse.value;
    const bool known = std::isfinite(share) && terms.mse.value > 0;
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
  return columns.text(table_margin);
}

/// Everything else, a row each.
template <class Number>
std::string figures_table(const ErrorTerms<Number>& terms) {
  std::vector<std::string> names, figures;
  for (const auto& [name, number, text] :
       numbers_with<Number>(terms, {TableRole::figure, TableRole::sweep})) {
    names.emplace_back(*text.title ? text.title : text.label);
    figures.push_back(text_of(*number));
  }
  Columns columns;
  columns.add("", names);
  columns.add_figures("", figures);
  return columns.text(table_margin).substr(1);  // without the empty line of headings
}

template <class Number>
std::string indices_table(const IndicesOf<Number>& indices) {
  using Index = const IndexOf<Number>&;
  const auto each = [&](auto cell) { return cells_of(indices, cell); };
  Columns columns;
  columns.add("diversity index", each([](Index index) { return index.name; }));
  columns.add_figures("", each([](Index index) {
                        const bool exact = !index.simulated && !std::isnan(index.figure.value);
                        return exact ? short_number(index.figure.value) : text_of(index.figure);
                      }));
  columns.add("ceiling", each([](Index index) { return short_number(index.upper_bound); }), true);
  return columns.text(table_margin);
}

/// How the heads were learned, where they were learned once.
std::string learned_text(const ConditionResult& one) {
  const LearnedHeads* learned = one.found.heads.get();
  if (learned == nullptr) return "";
  const std::uint64_t taken = learned->fit.history.back().step;
  std::string text =
      "heads learned on " +
      counted(static_cast<std::uint64_t>(learned->points - learned->held_out), "point") + " in " +
      counted(static_cast<std::uint64_t>(learned->fit.steps), "step");
  if (taken != learned->fit.steps) text += ", the best of " + std::to_string(taken);
  if (const auto& error = learned->fit.held_out_error) {
    text += ", squared error on " +
            counted(static_cast<std::uint64_t>(learned->held_out), "point") + " held out " +
            short_number(*error);
    if (learned->fresh_key_error) {
      text += " (with fresh keys " + short_number(*learned->fresh_key_error) + ")";
    }
  }
  text += ", " + duration_text(learned->seconds);
  return text + "\n\n";
}

template <class Number>
std::string single_table(const Condition& condition, const ErrorTerms<Number>& terms,
                         const IndicesOf<Number>& indices) {
  std::string text = components_table(terms);
  if (std::holds_alternative<DesignQueries>(*condition.queries) &&
      !std::isnan(terms.mse_query_se)) {
    text += "  (over the queries drawn, the standard error of the MSE is " +
            short_number(terms.mse_query_se) + ")\n";
  }
  text += "\n" + figures_table(terms);
  if (!indices.empty()) text += "\n" + indices_table(indices);
  return text;
}

/// The chordal index of each condition, where heads were learned: how far they came.
void add_chordal(const std::vector<ConditionResult>& conditions,
                 const std::vector<ConditionIndices>& indices, Columns& columns) {
  const bool learned =
      std::any_of(conditions.begin(), conditions.end(),
                  [](const ConditionResult& one) { return one.found.heads != nullptr; });
  if (!learned || indices.size() != conditions.size()) return;
  std::vector<std::string> cells;
  for (const ConditionIndices& of_condition : indices) {
    const auto chordal =
        std::find_if(of_condition.begin(), of_condition.end(),
                     [](const IndexOf<Estimate>& index) { return index.name == "chordal"; });
    cells.push_back(chordal == of_condition.end() ? "–" : short_number(chordal->figure.value));
  }
  columns.add("chordal index", cells, true);
}

/// The share of windows without weight, where there are any: figures of such a row are in part
/// those of the nearest key.
void add_empty_windows(const std::vector<ConditionResult>& conditions, Columns& columns) {
  std::vector<std::string> cells;
  bool any = false;
  for (const ConditionResult& one : conditions) {
    const double all =
        static_cast<double>(one.estimates.replicates) * one.plan.queries * one.plan.heads;
    const auto empty = static_cast<double>(one.estimates.windows.empty);
    any |= empty > 0;
    cells.push_back(short_number(100 * empty / all) + " %");
  }
  if (any) columns.add("no weight", cells, true);
}

/// A column for each number that stands in a table with a row a condition, of terms_in(condition).
template <class Result, class Terms>
void add_numbers(const std::vector<Result>& conditions, const Terms& terms_in,
                 const std::string& noun, Columns& columns) {
  if (conditions.empty()) return;
  const auto numbers = [&](const Result& condition) {
    return numbers_with(terms_in(condition), {TableRole::term, TableRole::total, TableRole::sweep});
  };
  const auto first = numbers(conditions.front());
  for (std::size_t i = 0; i < first.size(); ++i) {
    columns.add_figures(first[i].text.label + noun, cells_of(conditions, [&](const Result& one) {
                          return cell_of(*numbers(one)[i].number);
                        }));
  }
}

Columns sweep_table(const Scenario& scenario, const std::vector<ConditionResult>& conditions,
                    const std::vector<ConditionIndices>& indices) {
  Columns columns;
  add_swept(scenario.swept, conditions, columns);
  const auto terms = [](const ConditionResult& one) -> const auto& {
    return terms_of(one);
  };
  add_numbers(conditions, terms, "", columns);
  if (!conditions.empty() && conditions.front().difference) {
    const auto differences = [](const ConditionResult& one) -> const auto& {
      return one.difference->terms;
    };
    add_numbers(conditions, differences, " difference", columns);
  }
  add_chordal(conditions, indices, columns);
  add_empty_windows(conditions, columns);
  const std::vector<std::string> replicates = cells_of(conditions, replicates_text);
  if (!replicates.empty() && std::count(replicates.begin(), replicates.end(), replicates.front()) !=
                                 static_cast<std::ptrdiff_t>(replicates.size())) {
    columns.add("replicates", replicates, true);
  }
  return columns;
}

Columns sweep_table(const Scenario& scenario, const std::vector<ComputedCondition>& theory) {
  Columns columns;
  add_swept(scenario.swept, theory, columns);
  const auto terms = [](const ComputedCondition& one) -> const auto& {
    return terms_of(one);
  };
  add_numbers(theory, terms, "", columns);
  return columns;
}

/// Which forms were used. \param table of figures, whose remainders are explained where it has any
std::string forms_text(const std::vector<ComputedCondition>& theory, const std::string& table) {
  return sentences(forms_line(theory) +
                   (table.find(" (<") == std::string::npos
                        ? ""
                        : "(in parentheses: how far first order may be off by its next orders, the "
                          "change on refinement of exact forms)\n"));
}

/// Simulation and theory of one condition side by side.
std::string comparison_of_one(const SideBySide& comparison) {
  const ErrorTerms<Estimate> none;
  const auto numbers = numbers_of<Estimate>(none);
  std::vector<std::string> labels, simulated, computed, z;
  auto add = [&](const std::string& label, const ComparedFigure& figure) {
    labels.push_back(label);
    simulated.push_back(figure_text(figure.simulated));
    computed.push_back(computed_text(figure.computed));
    z.push_back(z_text(figure.z));
  };
  for (const ComparedFigure& figure : comparison.figures) {
    const auto number =
        std::ranges::find_if(numbers, [&](const auto& one) { return one.name == figure.name; });
    add(number == numbers.end() ? figure.name : number->text.label, figure);
  }
  for (const ComparedFigure& figure : comparison.largest)
    add("largest |z|: " + figure.name, figure);
  Columns columns;
  columns.add_key("", labels);
  columns.add_figures("simulation", simulated);
  columns.add_figures("theory", computed);
  columns.add("z", z, true);
  return columns.text(table_margin);
}

/// What z leaves open because the closed forms are not exact.
std::string remainders_text(const std::vector<ComputedCondition>& theory) {
  bool dominates = false;
  for (const ComputedCondition& computed : theory) {
    for (const ComparedFigure& figure : computed.simulated.figures) {
      dominates |= figure.z_scale > 2 * figure.simulated.mcse && std::abs(figure.z) < 2;
    }
  }
  if (!dominates) return "";
  return "some remainders exceed the MCSE: z there says only that simulation and theory agree "
         "within them\n";
}

/// A row a condition: MSE both ways, and the largest |z|.
std::string comparison_of_many(const Scenario& scenario,
                               const std::vector<ComputedCondition>& theory) {
  Columns columns;
  add_swept(scenario.swept, theory, columns);
  using C = const ComputedCondition&;
  const auto each = [&](auto cell) { return cells_of(theory, cell); };
  const auto mse = [](C one) -> const ComparedFigure& { return one.simulated.figures.front(); };
  columns.add_figures("MSE", each([&](C one) { return mse(one).simulated; }));
  columns.add_figures("theory", each([&](C one) { return computed_text(mse(one).computed); }));
  columns.add("z", each([&](C one) { return z_text(mse(one).z); }), true);
  const char* const headings[] = {"largest |z|: bias", "V", "C"};
  for (std::size_t i = 0; i < std::size(headings); ++i) {
    columns.add(headings[i], each([&](C one) {
                  const auto& largest = one.simulated.largest;
                  return i < largest.size() ? z_text(largest[i].z) : "–";
                }),
                true);
  }
  return columns.sweep_text(table_margin);
}

}  // namespace

std::string result_table(const Scenario& scenario, const RunResult& result,
                         const std::vector<ConditionIndices>& indices) {
  if (scenario.conditions.front().stack) return layer_table(scenario, result);
  std::string text =
      scenario.conditions.empty() ? "" : one_line(scenario.conditions.front().name) + "\n";
  text += sentences(header(scenario, result) + tables_text(scenario)) + "\n";
  if (result.conditions.empty()) return text + "  nothing was simulated\n";
  bool compact = false;
  if (scenario.swept.empty() && result.conditions.size() == 1) {
    const ConditionResult& one = result.conditions.front();
    text += learned_text(one) +
            single_table<Estimate>(*one.condition, one.estimates,
                                   indices.empty() ? ConditionIndices{} : indices.front());
  } else {
    const Columns columns = sweep_table(scenario, result.conditions, indices);
    compact = columns.compact(table_margin);
    text += columns.sweep_text(table_margin);
  }
  return text + "\n" + sentences(result_notes(result, compact));
}

std::string theory_table(const Scenario& scenario, const std::vector<ComputedCondition>& theory) {
  if (scenario.conditions.front().stack) return layer_theory_table(scenario, theory);
  std::string text = one_line(scenario.conditions.front().name) + "\n" +
                     sentences(heads_line(scenario, theory) + tables_text(scenario)) +
                     common(theory, {queries_text<ComputedCondition>}) + "\n\n";
  const ComputedCondition& first = theory.front();
  const std::string table =
      scenario.swept.empty() && theory.size() == 1
          ? single_table(*first.condition, first.result.figures, first.indices)
          : sweep_table(scenario, theory).sweep_text(table_margin);
  return text + table + "\n" + forms_text(theory, table);
}

std::string comparison_table(const Scenario& scenario,
                             const std::vector<ComputedCondition>& theory) {
  if (scenario.conditions.front().stack) return layer_comparison_table(scenario, theory);
  const bool one = scenario.swept.empty() && theory.size() == 1;
  const std::string table =
      one ? comparison_of_one(theory.front().simulated) : comparison_of_many(scenario, theory);
  return table + "\n" + forms_text(theory, table) +
         sentences(
             "z = (simulation - theory)/sqrt(MCSE² + remainder² + rounding²); none where the "
             "MCSE is 0 or fewer than 20 replicates carry a figure\n" +
             remainders_text(theory));
}

}  // namespace headlab::tools
