// SPDX-License-Identifier: Apache-2.0
#include "tools/report/mechanism_section.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/mechanism/mechanism.h"
#include "tools/report/law_formulas.h"
#include "tools/report/markup.h"
#include "tools/report/mathml.h"

namespace headlab::tools {
namespace {

Value value_of(const Json& json) {
  Value value;
  if (json.is_boolean()) value.data = json.get<bool>();
  if (json.is_number_integer()) value.data = json.get<std::int64_t>();
  if (json.is_number_float()) value.data = json.get<double>();
  if (json.is_string()) value.data = json.get<std::string>();
  if (json.is_array()) {
    Value::Array elements;
    for (const Json& one : json) elements.push_back(value_of(one));
    value.data = elements;
  }
  if (json.is_object()) {
    Value::Members members;
    for (const auto& [key, one] : json.items()) members.push_back({key, {}, value_of(one)});
    value.data = members;
  }
  return value;
}

const Json& stages_of(const Json& condition) {
  return member(member(member(condition, "parameters"), "heads"), "mechanism");
}

/// Names of the stages in force; all that are given where this program cannot read them.
std::vector<std::string> in_force(const Json& condition) {
  const Json& given = stages_of(condition);
  if (!given.is_object()) return {};
  try {
    MechanismStages stages;
    read_stages(value_of(given), "heads.mechanism", stages);
    const Json& parameters = member(condition, "parameters");
    const double n = number_of(member(member(parameters, "data"), "n"));
    const double heads = number_of(member(member(parameters, "heads"), "count"));
    const double k = number_of(member(member(parameters, "heads"), "dim"));
    if (n >= 1 && n < 1e15 && heads >= 1 && heads <= 1024 && k >= 1 && k <= 65536) {
      return stages_in_force(stages, static_cast<std::uint64_t>(n), static_cast<int>(heads),
                             static_cast<int>(k));
    }
  } catch (const InvalidInput&) {
    // Results of another version.
  }
  std::vector<std::string> names;
  for (const auto& [name, parameters] : given.items()) names.push_back(name);
  return names;
}

template <class... Stages>
std::map<std::string, std::string> shorthands(const OptionalStages<Stages...>&) {
  return {{Stages::name, Stages::shorthand}...};
}

/// Parameters of a stage by name, however they were written.
Json parameters_of(const std::string& stage, const Json& given) {
  static const std::map<std::string, std::string> all = shorthands(MechanismStages());
  if (given.is_object()) return given;
  const auto shorthand = all.find(stage);
  Json parameters = Json::object();
  parameters[shorthand == all.end() || shorthand->second.empty() ? "value" : shorthand->second] =
      given;
  return parameters;
}

bool is_of_seen_tokens(const std::string& stage) {
  return stage == "window" || stage == "skip" || stage == "sinks";
}

/// What a stage does, in words and as a formula in the notation of mathml().
struct Definition {
  std::string title;
  std::string words;
  std::string formula;

  auto operator<=>(const Definition&) const = default;
};

Definition of_keep(const Json& parameters) {
  const bool blocks = parameters.contains("block");
  std::string words =
      blocks ? "A head keeps the blocks b of successive tokens, of those it sees, whose score is "
               "among the largest; the last block may be shorter. All ties are kept."
             : "A head keeps its largest weights. All ties are kept, a weight of 0 never.";
  std::string formula = "i ∈ S_h ⇔ i ∈ A_h, ";
  if (blocks) {
    formula = "b ⊂ S_h ⇔ s_{h b} ≥ s_{h, (top)}, s_{h b} = ";
    formula += text_of(member(parameters, "by")) == "pooled" ? "K_h(\"mean key of\" b)"
                                                             : "sum_{i ∈ b} w_{h i}";
  } else if (parameters.contains("ratio")) {
    formula += "w_{h i} ≥ ratio max_{j ∈ A_h} w_{h j}";
  } else if (parameters.contains("fraction")) {
    formula += "w_{h i} ≥ w_{h, (k)}, k = ⌈fraction |A_h|⌉";
  } else {
    formula += "w_{h i} ≥ w_{h, (top)}";
  }
  if (!parameters.contains("ratio")) {
    words += std::string(" A number in brackets is a rank: (1) is the largest ") +
             (blocks ? "score." : "weight.");
  }
  if (member(parameters, "union") == true) {
    words += " Of what a head sees it keeps what any head keeps.";
    formula += ", S_h ← A_h ∩ (S_1 ∪ … ∪ S_H)";
  }
  return {"keep", words, formula};
}

Definition definition_of(const std::string& stage, const Json& parameters) {
  if (stage == "transform") {
    return parameters.contains("mix")
               ? Definition{stage, "Projections take up those of the other heads.",
                            "W_h ← W_h + mix sum_{l ≠ h} W_l"}
               : Definition{stage, "One matrix transforms what all heads project.",
                            "W_h ← W_h T, T = matrix"};
  }
  if (stage == "compress") {
    return {stage, "Keys and queries are projected to a lower rank, fitted to them.",
            "W_{K, h} ← W_{K, h} A_h, W_{Q, h} ← W_{Q, h} B_h, rank A_h B_h^T = rank"};
  }
  if (stage == "merge") {
    const std::string v = parameters.contains("gate") ? "gate" : "frac{1}{|g|}";
    return {stage,
            "Groups g of successive points, from the oldest on, become tokens; the last group may "
            "be smaller. From here on i counts tokens.",
            "X_g = " + v + " sum_{i ∈ g} X_i, Y_g = " + v +
                " sum_{i ∈ g} Y_i, |g| ≤ stride, N = ⌈n / stride⌉"};
  }
  if (stage == "levels") {
    return {stage,
            "Log weights are averaged over scales: M with i and l is the mean key of the aligned "
            "block of 2 to the power l tokens that holds token i.",
            "log w_{h i} = sum_l weights_l log K_h(M_{i, l})"};
  }
  if (stage == "keep") return of_keep(parameters);
  for (const LawDescription& one : describe_laws()) {
    if (one.family == "mechanism" && one.name == stage) return {stage, one.summary, ""};
  }
  return {stage, "", ""};
}

/// Of window, skip and sinks together: the set of tokens that a head sees.
Definition of_seen_tokens(const Json& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, value] : parameters.items()) names.push_back(name);
  const std::string end = parameters.contains("skip") ? "N - skip" : "N";
  std::string formula = "i ∈ A_h ⇔ ";
  if (parameters.contains("window")) formula += end + " - window < ";
  formula += "i ≤ " + end;
  if (parameters.contains("sinks")) formula += " \"or\" i ≤ sinks";
  return {listed(names), "A head sees some of the tokens i = 1, …, N, from the oldest on.",
          formula};
}

/// A stage as it is in some conditions.
struct Variant {
  Definition definition;
  std::vector<Json> parameters = {};
};

void add(std::vector<Variant>& variants, const Definition& definition, const Json& parameters) {
  const auto found = std::ranges::find(variants, definition, &Variant::definition);
  Variant& variant =
      found == variants.end() ? variants.emplace_back(Variant{.definition = definition}) : *found;
  variant.parameters.push_back(parameters);
}

/// Variants stage by stage, in the order in which stages apply.
std::vector<Variant> variants_of(const std::vector<const Json*>& conditions) {
  std::vector<std::string> order = stage_names();
  std::map<std::string, std::vector<Variant>> of_stage;
  for (const Json* condition : conditions) {
    Json seen = Json::object();
    for (const std::string& name : in_force(*condition)) {
      const Json parameters = parameters_of(name, member(stages_of(*condition), name));
      if (is_of_seen_tokens(name)) {
        seen[name] = member(parameters, "tokens");
        continue;
      }
      if (std::ranges::count(order, name) == 0) order.push_back(name);
      add(of_stage[name], definition_of(name, parameters), parameters);
    }
    if (!seen.empty()) add(of_stage["window"], of_seen_tokens(seen), seen);
  }
  std::vector<Variant> all;
  for (const std::string& name : order) {
    const std::vector<Variant>& some = of_stage[name];
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

std::string ensemble_formula(const std::vector<const Json*>& conditions) {
  bool any = false, seen = false, kept = false;
  for (const Json* condition : conditions) {
    for (const std::string& name : in_force(*condition)) {
      any = true;
      seen |= is_of_seen_tokens(name);
      kept |= name == "keep";
    }
  }
  if (!any || (!seen && !kept)) {
    return "f(x) = sum_{h = 1}^H a_h f_h(x), f_h(x) = sum_i w_{h i} Y_i, "
           "w_{h i} = frac{K_h(X_i)}{sum_j K_h(X_j)}";
  }
  const std::string set = kept ? "S_h" : "A_h";
  return "f(x) = sum_{h = 1}^H a_h f_h(x), f_h(x) = sum_{i ∈ " + set +
         "} ω_{h i} Y_i, ω_{h i} = frac{w_{h i}}{sum_{j ∈ " + set +
         "} w_{h j}}, w_{h i} = K_h(X_i)";
}

std::string mechanism_html(const std::vector<const Json*>& conditions) {
  std::string items;
  for (const Variant& one : variants_of(conditions)) {
    const Definition& definition = one.definition;
    std::string text =
        element("strong", escaped(definition.title)) + ": " + escaped(definition.words);
    if (one.parameters.size() < conditions.size()) text += " In some conditions.";
    if (!definition.formula.empty()) text += mathml(definition.formula, true);
    std::vector<const Json*> parameters;
    for (const Json& each : one.parameters) parameters.push_back(&each);
    items += element("li", text + parameters_html(parameters));
  }
  return items.empty() ? "" : element("ol", items);
}

}  // namespace headlab::tools
