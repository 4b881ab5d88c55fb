// SPDX-License-Identifier: Apache-2.0
#include "tools/report/scenario_sections.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "engine/files/json_writer.h"
#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/key_words.h"
#include "tools/report/law_formulas.h"
#include "tools/report/mathml.h"
#include "tools/report/scale.h"
#include "tools/report/sweep.h"
#include "tools/report/symbols.h"

namespace headlab::tools {

std::string first_of(const std::vector<std::string>& values, const char* separator,
                     const char* more) {
  constexpr std::size_t max_values = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), max_values); ++i) {
    text += (i == 0 ? "" : separator) + values[i];
  }
  if (values.size() <= max_values) return text;
  return text + more + " (" + std::to_string(values.size()) + " values)";
}

std::vector<const Value*> values_of(const Value::Array& conditions,
                                    std::initializer_list<const char*> path) {
  std::vector<const Value*> values;
  std::set<std::string> seen;
  for (const Value& condition : conditions) {
    const Value& value = parameter(condition, path);
    if (value.is<Value::Null>() || !seen.insert(to_json(value)).second) continue;
    values.push_back(&value);
  }
  return values;
}

std::string swept_html(const Value::Array& conditions, const SearchedKey& searched) {
  const Sweep sweep = sweep_of(conditions);
  std::string items;
  for (std::size_t k = 0; k < sweep.keys.size(); ++k) {
    if (sweep.keys[k].key == searched.key) continue;
    // In the order of the conditions, as the values of what moves along with the key.
    std::vector<std::string> values;
    for (const std::vector<std::size_t>& places : sweep.places) {
      const std::string value = shortened(sweep.keys[k].levels[places[k]].text, 60);
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    items += element("li", prose(sweep.keys[k].title() + ": " + first_of(values)));
  }
  if (!searched.key.empty()) {
    items += element("li", prose(searched.key + ", searched: " + searched.values));
  }
  return items.empty() ? "" : element("ul", items);
}

namespace {

/// The key that a figure along another is searched over, of a document that names its values.
SearchedKey searched_of(const Value& document) {
  const Value::Array& values = items_of(member(document, "min_over_values"));
  if (values.empty()) return {};
  const std::string key = text_of(member(document, "min_over_key"));
  const std::string count = " (" + counted(values.size(), "value") + ")";
  if (std::ranges::all_of(values, [](const Value& one) { return one.number().has_value(); })) {
    return {key, words_of(values.front()) + " to " + words_of(values.back()) + count};
  }
  std::vector<std::string> texts;
  for (const Value& one : values) texts.push_back(words_of(one));
  return {key, first_of(texts)};
}

std::string laws_html(const Value::Array& conditions, const char* family,
                      std::initializer_list<const char*> path) {
  // A law whose parameters vary is shown once.
  std::vector<std::vector<const Value*>> laws;
  for (const Value* value : values_of(conditions, path)) {
    const auto same = std::ranges::find_if(laws, [&](const auto& law) {
      return member(*law.front(), "law") == member(*value, "law");
    });
    (same == laws.end() ? laws.emplace_back() : *same).push_back(value);
  }
  std::string items;
  for (const auto& law : laws) {
    const std::string text = law_html(family, law);
    items += laws.size() == 1 ? text : element("li", text);
  }
  return laws.size() > 1 ? element("ul", items) : items;
}

std::string numbers_html(const Value::Array& conditions, std::initializer_list<const char*> path) {
  std::vector<std::string> values;
  for (const Value* value : values_of(conditions, path)) values.push_back(words_of(*value));
  return prose(first_of(values));
}

/// What standard errors cover.
std::string errors_text(const Value::Array& conditions) {
  if (std::ranges::none_of(conditions, [](const Value& condition) {
        return estimate_of(member(condition, "mse")).mcse >= 0;
      })) {
    return "From so few training sets there are no Monte Carlo standard errors (MCSE).";
  }
  const std::string text =
      "The number after ± is the Monte Carlo standard error (MCSE) of a figure, from a jackknife "
      "over "
      "groups of training sets: the uncertainty due to their finite number";
  std::string redrawn;  // "heads and queries"
  std::size_t with = 0;
  for (const Value& condition : conditions) {
    const std::string drawn = text_of(member(condition, "redraw"));
    if (drawn.empty()) continue;
    redrawn = drawn;
    ++with;
  }
  if (with == 0) return text + ", at the queries given.";
  return text + ". " + (with < conditions.size() ? "In some conditions the " : "The ") + redrawn +
         " were drawn again for every 8 training sets; figures are then means over these draws, "
         "and the MCSE covers them.";
}

/// What closed forms leave out.
std::string remainders_text(const Value::Array& conditions) {
  const std::string text = "Closed forms have no Monte Carlo error.";
  std::size_t first_order = 0;
  double most = 0;
  for (const Value& condition : conditions) {
    if (text_of(member(condition, "source")) != "first_order") continue;
    ++first_order;
    const double remainder = number_of(member(member(condition, "mse"), "remainder"));
    if (std::isfinite(remainder)) most = std::max(most, std::abs(remainder));
  }
  if (first_order == 0) return text;
  return text + " " +
         (first_order < conditions.size() ? "In " + std::to_string(first_order) + " of " +
                                                counted(conditions.size(), "condition") + " they"
                                          : "They") +
         " are of first order in 1/n, and may be off by their next orders: the numbers after < in "
         "the table of errors" +
         (most > 0 ? ", at most " + measured_number(most, 2) + ", in the units of the MSE." : ".");
}

/// Whether the kernel compares projections of queries and keys by different maps.
bool has_maps_of_queries(const Value::Array& conditions) {
  return std::ranges::any_of(conditions, [](const Value& condition) {
    const Value& subspaces = parameter(condition, {"heads", "subspaces"});
    const auto* query_key = std::get_if<bool>(&member(subspaces, "query_key").data);
    return (query_key != nullptr && *query_key) ||
           !member(subspaces, "query_matrices").is<Value::Null>();
  });
}

/// Puts a value at a dotted key that is there.
void set_at(Value& table, const std::string& key, const Value& value) {
  Value* at = &table;
  std::istringstream parts(key);
  for (std::string part; at != nullptr && std::getline(parts, part, '.');) at = at->find(part);
  if (at != nullptr && at != &table && !value.is<Value::Null>()) at->data = value.data;
}

/// What heads of some conditions do, whatever their number and dimension.
void add_laws_of_heads(DefinitionList& methods, const Value::Array& conditions) {
  methods.add("subspaces", laws_html(conditions, "subspaces", {"heads", "subspaces"}));
  methods.add("kernel", laws_html(conditions, "kernel", {"heads", "kernel"}));
  methods.add("stages of a head, in order", mechanism_html(conditions));
  if (has_maps_of_queries(conditions)) {
    methods.add("maps of the kernel", mathml("W_h") + prose(" of the queries before ") +
                                          mathml("x") + prose(", of the keys before ") +
                                          mathml("X"));
  }
  const std::string weights = laws_html(conditions, "weights", {"heads", "weights"});
  methods.add("head weights", weights.empty() ? mathml("a_h = 1/H") : weights);
}

/// Where training sets come from, in some conditions. \param sizes  n, as HTML
std::string mechanisms_html(const Value::Array& all, const std::string& sizes,
                            const SearchedKey& searched = {}) {
  DefinitionList mechanisms;
  mechanisms.add("training set", mathml("Y_i = m(X_i) + e_i, i = 1, …, n, E[e_i | X_i] = 0"));
  mechanisms.add("n", sizes);
  mechanisms.add("design", laws_html(all, "design", {"data", "design"}));
  mechanisms.add("regression", laws_html(all, "regression", {"data", "regression"}));
  mechanisms.add("noise", laws_html(all, "noise", {"data", "noise"}));
  mechanisms.add("sequence", laws_html(all, "sequence", {"data", "sequence"}));
  mechanisms.add("fixed design", numbers_html(all, {"data", "fixed_design"}));
  mechanisms.add("queries", laws_html(all, "queries", {"queries"}));
  mechanisms.add("varied", swept_html(all, searched));
  return mechanisms.html();
}

}  // namespace

std::string paragraph(const std::string& text) {
  return element("p", prose(text)) + "\n";
}

const Value& parameter(const Value& condition, std::initializer_list<const char*> path) {
  const Value* at = &member(condition, "parameters");
  for (const char* key : path) at = &member(*at, key);
  return *at;
}

Value::Array setups_of(const Value& document) {
  Value::Array setups;
  const auto add = [&](const Value& its_own) {
    setups.push_back({Value::Members{{"parameters", {}, its_own}}, {}});
  };
  for (const Value& curve : items_of(member(document, "curves"))) {
    const Value& its_own = member(curve, "parameters");
    if (!its_own.is<Value::Members>()) continue;
    for (const Value& point : items_of(member(curve, "points"))) {
      Value parameters = its_own;
      set_at(parameters, text_of(member(document, "over_key")), member(point, "x"));
      set_at(parameters, text_of(member(document, "min_over_key")), member(point, "chosen"));
      add(parameters);
    }
  }
  if (setups.empty()) add(member(document, "parameters"));
  return setups;
}

std::string scenario_html(const Value& document, const std::string& sizes) {
  return mechanisms_html(setups_of(document), sizes, searched_of(document));
}

std::string heads_html(const Value& document, const HeadsShown& shown) {
  const Value::Array setups = setups_of(document);
  DefinitionList methods;
  methods.add("ensemble", displayed(ensemble_formula(setups)));
  methods.add("number of heads H", shown.count.empty() ? numbers_html(setups, {"heads", "count"})
                                                       : with_formulas(shown.count));
  methods.add("dimension of a head d_k",
              shown.dim.empty() ? numbers_html(setups, {"heads", "dim"}) : prose(shown.dim));
  add_laws_of_heads(methods, setups);
  methods.add("bandwidth or temperature", with_formulas(shown.width));
  methods.add("estimator", numbers_html(setups, {"run", "estimator"}));
  methods.add("training sets", prose(shown.replicates));
  return methods.html();
}

std::vector<Section> run_sections(const Source& source) {
  const Value none;
  const Value::Array& conditions = source.shown_conditions();
  const Value& first = conditions.empty() ? none : conditions.front();
  const std::string aims = text_of(parameter(first, {"scenario", "aims"}));
  DefinitionList estimands;
  const bool covary = have_covariance(conditions);
  estimands.add("mean squared error of the ensemble",
                displayed(std::string("MSE = E(f(x) - m(x))^2; MSE = B^2 + sum_h a_h^2 V_h") +
                          (covary ? " + sum_{h ≠ l} a_h a_l C_{h l}" : "")));
  estimands.add("bias", mathml("B = E f(x) - m(x)"));
  estimands.add(
      covary ? "variance of a head, covariance of two" : "variance of the head",
      mathml(std::string("V_h = Var f_h(x)") + (covary ? ", C_{h l} = Cov(f_h(x), f_l(x))" : "")));
  const std::string over = paragraph(
      "Means and covariances are over training sets; figures are averaged over the "
      "queries.");

  DefinitionList methods;
  methods.add("ensemble", displayed(ensemble_formula(conditions)));
  methods.add("number of heads H", numbers_html(conditions, {"heads", "count"}));
  methods.add("dimension of a head d_k", numbers_html(conditions, {"heads", "dim"}));
  add_laws_of_heads(methods, conditions);
  if (source.kind == SourceKind::run) {
    methods.add("estimator", numbers_html(conditions, {"run", "estimator"}));
    double least = HUGE_VAL, most = 0;
    for (const Value& condition : conditions) {
      const double replicates = number_of(member(condition, "replicates"));
      least = std::min(least, replicates);
      most = std::max(most, replicates);
    }
    if (most > 0) {
      methods.add("training sets of each condition",
                  axis_number(least) + (least < most ? " to " + axis_number(most) : ""));
    }
  } else {
    std::vector<std::string> forms;
    for (const Value& condition : conditions) {
      const std::string form = in_words(text_of(member(condition, "source")));
      if (std::ranges::find(forms, form) == forms.end()) forms.push_back(form);
    }
    methods.add("closed form", prose(first_of(forms)));
  }
  std::vector<Section> all = {
      {"Aims", paragraph(aims.empty() ? "The scenario states no aims." : aims)},
      {"Data-generating mechanisms",
       mechanisms_html(conditions, numbers_html(conditions, {"data", "n"}))},
      {"Estimands", estimands.html() + over},
      {"Methods", methods.html()},
      {"Performance measures",
       paragraph(source.kind == SourceKind::run ? errors_text(conditions)
                                                : remainders_text(conditions))}};
  add_symbols(symbols_of_regression(), all);
  return all;
}

}  // namespace headlab::tools
