// SPDX-License-Identifier: Apache-2.0
#include "tools/report/scenario_sections.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "engine/files/json_writer.h"
#include "engine/moments/layer_estimates.h"
#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/law_formulas.h"
#include "tools/report/mathml.h"
#include "tools/report/scale.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_values = 8;  ///< of a swept parameter that are listed

/// The first of some values, and how many there are where not all are among them.
std::string first_of(const std::vector<std::string>& values, const char* separator = ", ",
                     const char* more = ", …") {
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), max_values); ++i) {
    text += (i == 0 ? "" : separator) + values[i];
  }
  if (values.size() <= max_values) return text;
  return text + more + " (" + std::to_string(values.size()) + " values)";
}

/// The different values of a parameter, in the order of the conditions.
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

std::string swept_html(const Value::Array& conditions) {
  const Sweep sweep = sweep_of(conditions);
  std::string items;
  for (std::size_t k = 0; k < sweep.keys.size(); ++k) {
    // In the order of the conditions, as the values of what moves along with the key.
    std::vector<std::string> values;
    for (const std::vector<std::size_t>& places : sweep.places) {
      const std::string value = shortened(sweep.keys[k].levels[places[k]].text, 60);
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    items += element("li", prose(sweep.keys[k].title() + ": " + first_of(values)));
  }
  return items.empty() ? "" : element("ul", items);
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
         (most > 0 ? ", at most " + measured_number(most, 2) + " of the MSE." : ".");
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

/// Where training sets come from, in some conditions. \param sizes  n, as HTML
std::string mechanisms_html(const Value::Array& all, const std::string& sizes) {
  DefinitionList mechanisms;
  mechanisms.add("training set", mathml("Y_i = m(X_i) + e_i, i = 1, …, n, E[e_i | X_i] = 0"));
  mechanisms.add("n", sizes);
  mechanisms.add("design", laws_html(all, "design", {"data", "design"}));
  mechanisms.add("regression", laws_html(all, "regression", {"data", "regression"}));
  mechanisms.add("noise", laws_html(all, "noise", {"data", "noise"}));
  mechanisms.add("sequence", laws_html(all, "sequence", {"data", "sequence"}));
  mechanisms.add("fixed design", numbers_html(all, {"data", "fixed_design"}));
  mechanisms.add("queries", laws_html(all, "queries", {"queries"}));
  mechanisms.add("varied", swept_html(all));
  return mechanisms.html();
}

/// A parameter in words: "softmax, temperature 2"; a law within a law by its name.
std::string parameter_words(const Value& value) {
  if (!value.is<Value::Members>()) {
    return value.is<std::string>() ? text_of(value) : shortened(to_json(value), 60);
  }
  const std::string law = text_of(member(value, "law"));
  std::string text = law;
  for (const auto& [name, location, of] : members_of(value)) {
    if (name == "law") continue;
    text += (text.empty() ? "" : ", ") + name + " " + shortened(parameter_words(of), 60);
  }
  return text;
}

/// Different texts, in their order: "2 or 4".
std::string alternatives(const std::vector<std::string>& texts) {
  std::vector<std::string> different;
  for (const std::string& text : texts) {
    if (std::ranges::count(different, text) == 0) different.push_back(text);
  }
  return first_of(different, " or ", " …");
}

/// The parameter at `table.key` of all conditions; of one law with its parameters, what varies.
std::string settings(const Value::Array& conditions, const char* table, const char* key) {
  const std::vector<const Value*> values = values_of(conditions, {table, key});
  if (values.empty()) return "";
  const Value& first = *values.front();
  const bool of_one_law = std::ranges::all_of(values, [&](const Value* value) {
    return value->is<Value::Members>() && member(*value, "law") == member(first, "law") &&
           members_of(*value).size() == members_of(first).size();
  });
  const auto texts = [&](const auto& text_of_value) {
    std::vector<std::string> all;
    for (const Value* value : values) all.push_back(text_of_value(*value));
    return alternatives(all);
  };
  if (!of_one_law) return texts(parameter_words);
  std::string text = text_of(member(first, "law"));
  for (const auto& [name, location, of] : members_of(first)) {
    if (name == "law") continue;
    const std::string& which = name;
    text += (text.empty() ? "" : ", ") + which + " " + texts([&](const Value& value) {
              return shortened(parameter_words(member(value, which.c_str())), 60);
            });
  }
  return text;
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

std::string scenario_html(const Value& document, const std::string& sizes) {
  return mechanisms_html({{Value::Members{{"parameters", {}, member(document, "parameters")}}, {}}},
                         sizes);
}

std::vector<Section> run_sections(const Source& source) {
  const Value none;
  const Value::Array& conditions = source.shown_conditions();
  const Value& first = conditions.empty() ? none : conditions.front();
  const std::string aims = text_of(parameter(first, {"scenario", "aims"}));
  DefinitionList estimands;
  const bool covary = have_covariance(conditions);
  estimands.add("mean squared error of the ensemble",
                mathml(std::string("MSE = E(f(x) - m(x))^2 = B^2 + sum_h a_h^2 V_h") +
                           (covary ? " + sum_{h ≠ l} a_h a_l C_{h l}" : ""),
                       true));
  estimands.add("bias", mathml("B = E f(x) - m(x)"));
  estimands.add(
      covary ? "variance of a head, covariance of two" : "variance of the head",
      mathml(std::string("V_h = Var f_h(x)") + (covary ? ", C_{h l} = Cov(f_h(x), f_l(x))" : "")));
  const std::string over = paragraph(
      "Means and covariances are over training sets; figures are averaged over the "
      "queries.");

  DefinitionList methods;
  methods.add("ensemble", mathml(ensemble_formula(conditions), true));
  methods.add("number of heads H", numbers_html(conditions, {"heads", "count"}));
  methods.add("dimension of a head d_k", numbers_html(conditions, {"heads", "dim"}));
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
  return {{"Aims", paragraph(aims.empty() ? "The scenario states no aims." : aims)},
          {"Data-generating mechanisms",
           mechanisms_html(conditions, numbers_html(conditions, {"data", "n"}))},
          {"Estimands", estimands.html() + over},
          {"Methods", methods.html()},
          {"Performance measures",
           paragraph(source.kind == SourceKind::run ? errors_text(conditions)
                                                    : remainders_text(conditions))}};
}

std::vector<Section> depth_sections(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const Value& first = conditions.front();
  const std::string aims = text_of(parameter(first, {"scenario", "aims"}));
  DefinitionList tokens;
  using Keys = std::initializer_list<std::pair<const char*, const char*>>;
  const auto add_all = [&](DefinitionList& list, const char* table, const Keys& keys) {
    for (const auto& [key, name] : keys) list.add(name, prose(settings(conditions, table, key)));
  };
  add_all(tokens, "tokens",
          {{"n", "tokens n"}, {"design", "design"}, {"fixed_design", "fixed design"}});
  std::string varied;
  for (const SweptKey& key : sweep_of(conditions).keys) {
    std::string values;
    for (const Level& level : key.levels) values += (values.empty() ? "" : ", ") + level.text;
    varied += element("li", prose(key.title() + ": " + shortened(values, 200)));
  }
  if (!varied.empty()) tokens.add("varied", element("ul", varied));

  DefinitionList estimands;
  estimands.add("mean token m, residual R",
                mathml("m = frac{1}{n} sum_i x_i, R_i = x_i - m, X_i = x_i"));
  const Value::Array& layers = items_of(member(first, "layers"));
  for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
    if (layers.empty() || !member(layers[0], metric.name).is<Value::Members>()) continue;
    const std::string formula = metric_formula(metric.name);
    const std::string doc = metric.doc;
    const std::size_t more = doc.find("; ");  // "undefined where R = 0"
    estimands.add(metric_words(metric.name),
                  formula.empty() ? prose(doc)
                                  : mathml(formula) +
                                        (more == std::string::npos ? "" : prose(doc.substr(more))));
  }

  DefinitionList methods;
  const bool softmax = std::ranges::all_of(conditions, [](const Value& condition) {
    return text_of(member(parameter(condition, {"heads", "kernel"}), "law")) == "softmax";
  });
  methods.add("a layer",
              mathml(std::string("X' = s X + b sum_h A_h Z V_h") +
                         (softmax ? ", A_h = softmax(Z M_h Z^T / t)" : ""),
                     true) +
                  (softmax ? ""
                           : element("p", {{"class", "note"}},
                                     mathml("A_h") + prose(" are the weights of the kernel"))));
  add_all(methods, "heads",
          {{"count", "heads H"},
           {"dim", "dimension d_k"},
           {"value_dim", "dimension d_v"},
           {"kernel", "kernel"},
           {"maps", "maps"},
           {"values", "values"},
           {"order", "order"}});
  add_all(methods, "layers",
          {{"count", "layers L"},
           {"skip", "skip s"},
           {"branch", "branch b"},
           {"norm", "norm"},
           {"memory", "memory a"},
           {"mask", "mask"},
           {"mlp", "MLP"},
           {"weights", "weights"}});
  const Value& replicates = member(first, "replicates");
  if (replicates.number()) methods.add("replicates", escaped(to_json(replicates)));

  const std::string errors =
      replicates.number()
          ? "Every figure is a mean over replicates, each with tokens and weights of its own" +
                std::string(
                    number_of(replicates) < min_replicates_for_mcse
                        ? "; from so few there are no Monte Carlo standard errors (MCSE). "
                        : ". The number after ± is its Monte Carlo standard error (MCSE), from a "
                          "jackknife over groups of replicates. ") +
                "A metric that is undefined in any replicate is undefined. What differs between "
                "tokens "
                "is computed from differences, so that it keeps its digits below the rounding of "
                "the "
                "tokens themselves."
          : "Closed forms have no Monte Carlo error.";
  return {{"Aims", paragraph(aims.empty() ? "The scenario states no aims." : aims)},
          {"Data-generating mechanisms", tokens.html()},
          {"Estimands", estimands.html()},
          {"Methods", methods.html()},
          {"Performance measures", paragraph(errors)}};
}

}  // namespace headlab::tools
