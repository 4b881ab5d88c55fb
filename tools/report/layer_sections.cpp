// SPDX-License-Identifier: Apache-2.0
/// \file Texts of a report on a stack of layers.
#include <algorithm>
#include <map>

#include "engine/files/json_writer.h"
#include "engine/moments/layer_estimates.h"
#include "engine/scenario/stack/stack_setting.h"
#include "tools/report/figure.h"
#include "tools/report/law_formulas.h"
#include "tools/report/mathml.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/sweep.h"
#include "tools/report/symbols.h"

namespace headlab::tools {
namespace {

/// A parameter in words: "softmax, temperature 2"; a law within a law by its name.
std::string parameter_words(const Value& value) {
  if (!value.is<Value::Members>()) {
    return value.is<std::string>() ? text_of(value) : shown_value(value);
  }
  const std::string law = text_of(member(value, "law"));
  std::string text = law;
  for (const auto& [name, location, of] : members_of(value)) {
    if (name == "law") continue;
    text += (text.empty() ? "" : ", ") + name + " " + parameter_words(of);
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
              return parameter_words(member(value, which.c_str()));
            });
  }
  return text;
}

/// The formulas of a law of stacks of layers in the notation of mathml(), with "; " between them;
/// empty where its name or the formula of the layer says all.
std::string formula_of_law(const std::string& family, const std::string& law,
                           const Value& condition) {
  static const std::map<std::string, std::string> all = {
      {"tokens simplex", "|x_i - m|^2 = rho, |m|^2 = mu"},
      {"attention independent_logits", "A_h = softmax(S_h), S_{h, i j} ~ N(0, sd^2)"},
      {"attention uniform", "A_{h, i j} = A_{h, i l}"},
      {"attention fixed", "A_h = matrices_h"},
      {"maps scaled_identity", "V_h = value_h I"},
      {"maps explicit", "V_h = value_h"},
      {"norm rms", "norm(x) = gain frac{x}{sqrt{|x|^2 / d + epsilon}} + bias"},
      {"norm layer",
       "norm(x) = gain frac{y}{sqrt{|y|^2 / d + epsilon}} + bias, "
       "y = x - frac{1}{d} sum_j x_j"},
      {"mlp relu",
       "W_1 ~ N(0, frac{1}{d}), b_1 ~ N(0, bias^2), W_2 ~ N(0, frac{2 scale^2}{width})"},
      {"mlp explicit", "W_1 = input, b_1 = bias, W_2 = output"}};
  // Only a softmax compares queries and keys.
  const bool compares =
      text_of(member(parameter(condition, {"heads", "kernel"}), "law")) == "softmax";
  if (family == "maps" && (law == "gaussian" || law == "pruned")) {
    const bool one_map = text_of(parameter(condition, {"heads", "values"})) == "averaged" ||
                         text_of(parameter(condition, {"heads", "order"})) == "alternating";
    return std::string(compares ? "M_h = W_{Q, h} W_{K, h}^T; W_{Q, h}, W_{K, h} ~ "
                                  "N(0, \"query_key\" / d); "
                                : "") +
           "V_h = W_{V, h} W_{O, h}; W_{V, h} ~ N(0, value / d); W_{O, h} ~ N(0, 1 / " +
           (one_map ? "d_v" : "(H d_v)") + ")";
  }
  const auto found = all.find(family + " " + law);
  if (found == all.end()) return "";
  return (family != "maps" || !compares ? ""
                                        : std::string("M_h = \"query_key\"_h") +
                                              (law == "scaled_identity" ? " I" : "") + "; ") +
         found->second;
}

/// What the words of a law must add to its formula.
std::string words_of_law(const std::string& family, const std::string& law) {
  static const std::map<std::string, std::string> all = {
      {"attention independent_logits", "of every layer anew; correlation is that of two heads"},
      {"attention uniform", "of all keys allowed"},
      {"maps gaussian", "with independent entries; $d_v = d_k$ unless it is given"},
      {"maps pruned",
       "of a target; each entry of $M_h$ and $V_h$ becomes the nearest sum of a subset of hidden/d "
       "products of two uniform numbers on (−1, 1); $d_v = d_k$ unless it is given"},
      {"tokens simplex", "all tokens equally far from one another"},
      {"mlp relu", "with independent entries"}};
  const auto found = all.find(family + " " + law);
  return found == all.end() ? "" : found->second;
}

/// Formulas that "; " separates, so that lines break between them.
std::string formulas_html(const std::string& formulas) {
  std::string html;
  for (std::size_t begin = 0; begin < formulas.size();) {
    const std::size_t end = std::min(formulas.find("; ", begin), formulas.size());
    html += (html.empty() ? "" : "; ") + mathml(formulas.substr(begin, end - begin));
    begin = end + 2;
  }
  return html;
}

/// The laws of a key with their formulas and with the defaults that these use.
std::string laws_of_layers(const Value::Array& conditions, const char* table, const char* key,
                           const std::string& family) {
  std::string html = prose(settings(conditions, table, key));
  std::vector<std::string> shown;
  const std::vector<LawDescription> known = describe_stack_laws();
  for (const Value& condition : conditions) {
    const Value& value = parameter(condition, {table, key});
    std::string law = text_of(member(value, "law"));
    // The target of pruned maps has a law of its own, of which the formula is.
    const std::string formula = formula_of_law(family, law, condition);
    if (formula.empty() || std::ranges::count(shown, formula) > 0) continue;
    shown.push_back(formula);
    const std::string words = words_of_law(family, law);
    html += element("p", {{"class", "note"}},
                    formulas_html(formula) + (words.empty() ? "" : with_formulas(", " + words)));
    const Value& target = member(value, "of");
    if (target.is<Value::Members>()) law = text_of(member(target, "law"));
    const auto description = std::ranges::find_if(
        known, [&](const LawDescription& one) { return one.family == family && one.name == law; });
    if (description == known.end()) continue;
    html += defaults_html(target.is<Value::Members>() ? target : value, formula,
                          description->parameters);
  }
  return html;
}

/// The formulas of a layer, in the order in which they apply.
std::vector<std::string> layer_formulas(const Value& condition) {
  const auto word = [&](const char* table, const char* key) {
    return text_of(parameter(condition, {table, key}));
  };
  const auto law = [&](const char* table, const char* key) {
    return text_of(member(parameter(condition, {table, key}), "law"));
  };
  const std::string place = text_of(member(parameter(condition, {"layers", "norm"}), "place"));
  const std::string mlp = law("layers", "mlp");
  const double memory = number_of(parameter(condition, {"layers", "memory"}));
  std::vector<std::string> all;
  all.emplace_back(place == "pre" ? "Z = norm(X)" : "Z = X");
  if (law("heads", "kernel") == "softmax") {
    if (memory > 0) {
      all.emplace_back("S_h = frac{Z M_h Z^T}{t} \"in layer 1, then\"");
      all.emplace_back("S_h ← a S_h + (1 - a) frac{Z M_h Z^T}{t}");
      all.emplace_back("A_h = softmax(S_h)");
    } else {
      all.emplace_back("A_h = softmax(frac{Z M_h Z^T}{t})");
    }
  }
  const std::string mixed = word("heads", "order") == "alternating"
                                ? "A_h Z V_h, h = (l - 1) \"mod\" H"
                            : word("heads", "values") == "averaged" ? "(frac{1}{H} sum_h A_h) Z V"
                                                                    : "sum_h A_h Z V_h";
  all.push_back("X' = s X + b " + mixed);
  if (place == "post") all.emplace_back("X' ← norm(X')");
  if (!mlp.empty() && mlp != "none") {
    all.emplace_back(place == "pre" ? "Z' = norm(X')" : "Z' = X'");
    all.emplace_back("X'' = X' + relu(Z' W_1 + b_1) W_2");
    if (place == "post") all.emplace_back("X'' ← norm(X'')");
  }
  return all;
}

/// The layer of every condition, those that differ one below the other.
std::string layer_html(const Value::Array& conditions) {
  std::vector<std::string> variants;
  std::vector<std::vector<std::size_t>> where;  // [variants], conditions
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    std::string html;
    for (const std::string& formula : layer_formulas(conditions[c])) html += mathml(formula, true);
    const auto found = std::ranges::find(variants, html);
    if (found == variants.end()) {
      variants.push_back(html);
      where.push_back({c});
    } else {
      where[static_cast<std::size_t>(found - variants.begin())].push_back(c);
    }
  }
  if (variants.size() == 1) return variants.front();
  std::string items;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    items += element("li", prose(where_of(conditions, where[i])) + variants[i]);
  }
  return element("ul", items);
}

/// The metrics of layers that plots show, with their formulas; of the others where they stand.
std::string estimands_html(const Value& first) {
  DefinitionList estimands;
  estimands.add("mean token m, residual R",
                mathml("m = frac{1}{n} sum_i x_i, R_i = x_i - m, X_i = x_i"));
  std::string others;
  const Value::Array& layers = items_of(member(first, "layers"));
  for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
    if (layers.empty() || !member(layers[0], metric.name).is<Value::Members>()) continue;
    const std::vector<std::string>& drawn = drawn_layer_metrics();
    if (std::ranges::count(drawn, metric.name) == 0) {
      others += (others.empty() ? "" : ", ") + metric_words(metric.name);
      continue;
    }
    const std::string formula = metric_formula(metric.name);
    const std::string doc = metric.doc;
    const std::size_t more = doc.find("; ");  // "undefined where R = 0"
    estimands.add(metric_words(metric.name),
                  formula.empty() ? prose(doc)
                                  : mathml(formula) +
                                        (more == std::string::npos ? "" : prose(doc.substr(more))));
  }
  const std::string norms = "|·| of a matrix is its Frobenius norm.";
  return estimands.html() + paragraph(norms) +
         (others.empty() ? ""
                         : element("p", prose("Under ") + code_element("conditions[].layers") +
                                            prose(" of the results, defined by ") +
                                            code_element("headlab help figures") +
                                            prose(", and not in this report: " + others + ".")) +
                               "\n");
}

/// What figures and their errors are.
std::string errors_of_layers(const Value& replicates) {
  if (!replicates.number()) return "Closed forms have no Monte Carlo error.";
  const double count = number_of(replicates);
  const std::string digits =
      "What differs between tokens is computed from differences, so that it keeps its digits below "
      "the rounding of the tokens themselves.";
  if (count == 1) {
    return "Every figure is that of the only replicate, without a Monte Carlo standard error. " +
           digits;
  }
  return "Every figure is a mean over replicates, each with tokens and weights of its own unless "
         "they are given" +
         std::string(count < min_replicates_for_mcse
                         ? "; from so few there are no Monte Carlo standard errors (MCSE). "
                         : ". The number after ± is its Monte Carlo standard error (MCSE), from a "
                           "jackknife over groups of replicates. ") +
         "A figure that is undefined in any replicate is undefined. " + digits;
}

}  // namespace

std::vector<Section> depth_sections(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const Value& first = conditions.front();
  const std::string aims = text_of(parameter(first, {"scenario", "aims"}));
  using Keys = std::initializer_list<std::pair<const char*, const char*>>;
  const auto add_all = [&](DefinitionList& list, const char* table, const Keys& keys) {
    for (const auto& [key, name] : keys) list.add(name, prose(settings(conditions, table, key)));
  };
  const auto add_laws = [&](DefinitionList& list, const char* table, const char* key,
                            const char* name, const char* family) {
    list.add(name, laws_of_layers(conditions, table, key, family));
  };
  DefinitionList tokens;
  add_all(tokens, "tokens", {{"n", "tokens n"}});
  add_laws(tokens, "tokens", "design", "design", "tokens");
  add_all(tokens, "tokens", {{"fixed_design", "fixed design"}});
  tokens.add("varied", swept_html(conditions));

  DefinitionList methods;
  methods.add("layer l = 1, …, L", layer_html(conditions));
  add_all(methods, "heads",
          {{"count", "heads H"}, {"dim", "dimension d_k"}, {"value_dim", "dimension d_v"}});
  add_laws(methods, "heads", "kernel", "kernel", "attention");
  add_laws(methods, "heads", "maps", "maps", "maps");
  add_all(methods, "heads", {{"values", "values"}, {"order", "order"}});
  add_all(methods, "layers", {{"count", "layers L"}});
  // A layer's formula has these in force where the scenario leaves them out.
  const auto add_number = [&](const char* key, const char* name, const char* otherwise) {
    const std::string text = settings(conditions, "layers", key);
    methods.add(name, prose(text.empty() ? std::string(otherwise) + " (default)" : text));
  };
  add_number("skip", "skip s", "0");
  add_number("branch", "branch b", "1");
  add_laws(methods, "layers", "norm", "norm", "norm");
  add_all(methods, "layers", {{"memory", "memory a"}, {"mask", "mask"}});
  add_laws(methods, "layers", "mlp", "MLP", "mlp");
  add_all(methods, "layers", {{"weights", "weights"}});
  const Value& replicates = member(first, "replicates");
  if (replicates.number()) methods.add("replicates", escaped(to_json(replicates)));

  std::vector<Section> all = {
      {"Aims", paragraph(aims.empty() ? "The scenario states no aims." : aims)},
      {"Data-generating mechanisms", tokens.html()},
      {"Estimands", estimands_html(first)},
      {"Methods", methods.html()},
      {"Performance measures", paragraph(errors_of_layers(replicates))}};
  add_symbols(symbols_of_layers(), all);
  return all;
}

}  // namespace headlab::tools
