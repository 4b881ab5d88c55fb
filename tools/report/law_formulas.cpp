// SPDX-License-Identifier: Apache-2.0
#include "tools/report/law_formulas.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/mechanism/mechanism.h"
#include "tools/report/markup.h"
#include "tools/report/mathml.h"
#include "tools/report/sweep.h"
#include "tools/report/symbols.h"

namespace headlab::tools {
namespace {

constexpr std::size_t longest_parameter = 400;  ///< characters
constexpr std::size_t max_values_of_parameter = 6;

/// The letter of a parameter in formulas, as docs/laws.md has it; of others their name.
std::string with_letter(const std::string& key) {
  static const std::map<std::string, std::string> letters = {
      {"bandwidth", "b"}, {"temperature", "t"}, {"correlation", "c"}};
  const auto found = letters.find(key);
  return found == letters.end() ? key : key + " " + found->second;
}

/// True for a matrix of zeros with ones on its diagonal.
bool is_identity(const Value& matrix) {
  const Value::Array& rows = items_of(matrix);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (items_of(rows[i]).size() != rows.size()) return false;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (number_of(items_of(rows[i])[j]) != (i == j ? 1 : 0)) return false;
    }
  }
  return !rows.empty();
}

/// "X ~ N(0, I_4)" of a normal law with these parameters, which are those that it states.
std::string normal_formula(const Value& law) {
  const Value& mean = member(law, "mean");
  const Value& covariance = member(law, "covariance");
  const bool centred =
      std::ranges::all_of(items_of(mean), [](const Value& one) { return number_of(one) == 0; });
  const bool identity = is_identity(covariance) || covariance.is<Value::Null>();
  std::string spread = "covariance";
  if (member(law, "ar1").number()) {
    spread = "Σ), Σ_{i j} = ar1^{|i - j|}";
  } else if (identity) {
    const double dim = number_of(member(law, "dim"));
    spread = "I_" + (dim >= 1 ? "{" + number_text(dim) + "}" : std::string("d"));
  }
  return "X ~ N(" + std::string(centred ? "0" : "mean") + ", " + spread +
         (spread.starts_with("Σ)") ? "" : ")");
}

/// What the program says of a law or a stage; nothing of those of another version.
LawDescription description_of(const std::string& family, const std::string& law) {
  for (const LawDescription& one : describe_laws()) {
    if (one.family == family && one.name == law) return one;
  }
  return {};
}

/// "0" of "[d], radians, default 0"; empty where the documentation names no default.
std::string default_of(const ParameterDescription& parameter) {
  const std::string word = "default ";
  const std::size_t at = parameter.doc.find(word);
  return at == std::string::npos ? "" : parameter.doc.substr(at + word.size());
}

/// The parameters in `formula` that some law leaves out, with their defaults.
std::vector<std::pair<std::string, std::string>> defaults_of(
    const std::vector<const Value*>& laws, const std::string& formula,
    const std::vector<ParameterDescription>& known) {
  const std::string symbols = mathml(formula);
  std::vector<std::pair<std::string, std::string>> defaults;
  for (const ParameterDescription& one : known) {
    const std::string value = default_of(one);
    const bool left_out = std::ranges::any_of(
        laws, [&](const Value* law) { return member(*law, one.key.c_str()).is<Value::Null>(); });
    if (value.empty() || !left_out || symbols.find(">" + one.key + "<") == std::string::npos) {
      continue;
    }
    defaults.emplace_back(one.key, value);
  }
  return defaults;
}

/// The parameters of laws, with each value that they take, as a note; empty without any. Of those
/// in `formula` that a law leaves out it has the default.
std::string parameters_html(const std::vector<const Value*>& laws, const std::string& formula = "",
                            const std::vector<ParameterDescription>& known = {}) {
  // Values of every parameter, in the order of the laws.
  using Named = std::pair<std::string, std::vector<std::string>>;
  std::vector<Named> parameters;
  const auto values_of_key = [&](const std::string& key) -> std::vector<std::string>& {
    const auto found = std::ranges::find(parameters, key, &Named::first);
    return (found == parameters.end() ? parameters.emplace_back(key, Named::second_type()) : *found)
        .second;
  };
  for (const Value* law : laws) {
    for (const auto& [name, location, value] : members_of(*law)) {
      if (name == "law") continue;
      const std::string words = shown_value(value);
      std::vector<std::string>& values = values_of_key(name);
      if (std::ranges::count(values, words) == 0) values.push_back(words);
    }
  }
  for (const auto& [key, value] : defaults_of(laws, formula, known)) {
    values_of_key(key).push_back(value + " (default)");
  }
  std::string list;
  for (const auto& [key, values] : parameters) {
    list += (list.empty() ? "" : "; ") + with_letter(key) + " = ";
    for (std::size_t i = 0; i < std::min(values.size(), max_values_of_parameter); ++i) {
      list += (i == 0 ? "" : " or ") + values[i];
    }
    if (values.size() > max_values_of_parameter) {
      list += " or … (" + std::to_string(values.size()) + " values)";
    }
  }
  return list.empty() ? "" : element("p", {{"class", "note"}}, prose(list));
}

/// A summary, which is written for terminals and has k for d_k, as with_formulas() takes it.
std::string for_pages(const std::string& summary) {
  static const std::map<std::string, std::string> symbols = {
      {"k", "d_k"}, {"x", "×"}, {"<=", "≤"}, {"H", "H"}, {"d", "d"}};
  std::string text;
  bool formula = false;
  std::istringstream words(summary);
  for (std::string word; std::getline(words, word, ' ');) {
    const auto symbol = symbols.find(word);
    const bool is_symbol = symbol != symbols.end();
    if (formula && !is_symbol) text += "$";
    text += text.empty() ? "" : " ";
    if (!formula && is_symbol) text += "$";
    text += is_symbol ? symbol->second : word;
    formula = is_symbol;
  }
  return text + (formula ? "$" : "");
}

const Value& stages_of(const Value& condition) {
  return member(member(member(condition, "parameters"), "heads"), "mechanism");
}

/// Names of the stages in force; all that are given where this program cannot read them.
std::vector<std::string> in_force(const Value& condition) {
  const Value& given = stages_of(condition);
  if (!given.is<Value::Members>()) return {};
  try {
    MechanismStages stages;
    read_stages(given, "heads.mechanism", stages);
    const Value& parameters = member(condition, "parameters");
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
  for (const Value::Entry& one : members_of(given)) names.push_back(one.key);
  return names;
}

template <class... Stages>
std::map<std::string, std::string> shorthands(const OptionalStages<Stages...>&) {
  return {{Stages::name, Stages::shorthand}...};
}

/// Parameters of a stage by name, however they were written.
Value parameters_of(const std::string& stage, const Value& given) {
  static const std::map<std::string, std::string> all = shorthands(MechanismStages());
  if (given.is<Value::Members>()) return given;
  const auto shorthand = all.find(stage);
  const bool has_none = shorthand == all.end() || shorthand->second.empty();
  return {Value::Members{{has_none ? "value" : shorthand->second, {}, given}}, {}};
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

Definition of_keep(const Value& parameters) {
  const bool blocks = parameters.find("block") != nullptr;
  std::string words =
      blocks ? "A head keeps the blocks b of successive tokens, of those it sees, whose score is "
               "among the largest; the last block may be shorter. All ties are kept."
             : "A head keeps its largest weights. All ties are kept, a weight of 0 never.";
  std::string formula = "i ∈ S_h ⇔ i ∈ A_h, ";
  if (blocks) {
    formula = "b ⊂ S_h ⇔ s_{h b} ≥ s_{h, (top)}, s_{h b} = ";
    formula += text_of(member(parameters, "by")) == "pooled" ? "K_h(\"mean key of\" b)"
                                                             : "sum_{i ∈ b} w_{h i}";
  } else if (parameters.find("ratio") != nullptr) {
    formula += "w_{h i} ≥ ratio max_{j ∈ A_h} w_{h j}";
  } else if (parameters.find("fraction") != nullptr) {
    formula += "w_{h i} ≥ w_{h, (k)}, k = ⌈fraction |A_h|⌉";
  } else {
    formula += "w_{h i} ≥ w_{h, (top)}";
  }
  if (parameters.find("ratio") == nullptr) {
    words += std::string(" A number in brackets is a rank: (1) is the largest ") +
             (blocks ? "score." : "weight.");
  }
  if (is_true(member(parameters, "union"))) {
    words += " Of what a head sees it keeps what any head keeps.";
    formula += ", S_h ← A_h ∩ (S_1 ∪ … ∪ S_H)";
  }
  return {"keep", words, formula};
}

Definition definition_of(const std::string& stage, const Value& parameters) {
  if (stage == "transform") {
    return parameters.find("mix") != nullptr
               ? Definition{stage, "Projections take up those of the other heads.",
                            "W_h ← W_h + mix sum_{l ≠ h} W_l"}
               : Definition{stage, "One matrix transforms what all heads project.",
                            "W_h ← W_h T, T = matrix"};
  }
  if (stage == "compress") {
    return {
        stage,
        "W_K of the keys and W_Q of the queries lose rank by matrices L and R, fitted to keys and "
        "queries.",
        "W_{K, h} ← W_{K, h} L_h, W_{Q, h} ← W_{Q, h} R_h, rank L_h R_h^T = rank"};
  }
  if (stage == "merge") {
    const std::string v = parameters.find("gate") != nullptr ? "gate" : "frac{1}{|g|}";
    return {stage,
            "Groups g of successive points, from the oldest on, become tokens; the last group may "
            "be smaller. From here on i counts tokens.",
            "X_g = " + v + " sum_{i ∈ g} X_i, Y_g = " + v +
                " sum_{i ∈ g} Y_i, |g| ≤ stride, n' = ⌈n / stride⌉"};
  }
  if (stage == "levels") {
    return {stage,
            "Log weights are averaged over scales: M with i and l is the mean key of the aligned "
            "block of 2 to the power l tokens that holds token i.",
            "log w_{h i} = sum_l weights_l log K_h(M_{i, l})"};
  }
  if (stage == "keep") return of_keep(parameters);
  return {stage, description_of("mechanism", stage).summary, ""};
}

/// Of window, skip and sinks together: the set of tokens that a head sees.
Definition of_seen_tokens(const Value& parameters) {
  std::vector<std::string> names;
  for (const Value::Entry& one : members_of(parameters)) names.push_back(one.key);
  const std::string end = parameters.find("skip") != nullptr ? "n' - skip" : "n'";
  std::string formula = "i ∈ A_h ⇔ ";
  if (parameters.find("window") != nullptr) formula += end + " - window < ";
  formula += "i ≤ " + end;
  if (parameters.find("sinks") != nullptr) formula += " \"or\" i ≤ sinks";
  return {listed(names),
          "A head sees some of the tokens i = 1, …, n', from the oldest on; unless points are "
          "merged, n' is n.",
          formula};
}

/// A stage as it is in some conditions.
struct Variant {
  Definition definition;
  std::vector<Value> parameters = {};
  std::vector<std::size_t> conditions = {};
};

void add(std::vector<Variant>& variants, const Definition& definition, const Value& parameters,
         std::size_t condition) {
  const auto found = std::ranges::find(variants, definition, &Variant::definition);
  Variant& variant =
      found == variants.end() ? variants.emplace_back(Variant{.definition = definition}) : *found;
  variant.parameters.push_back(parameters);
  variant.conditions.push_back(condition);
}

/// Variants stage by stage, in the order in which stages apply.
std::vector<Variant> variants_of(const Value::Array& conditions) {
  std::vector<std::string> order = stage_names();
  std::map<std::string, std::vector<Variant>> of_stage;
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    const Value& condition = conditions[c];
    Value::Members seen;
    for (const std::string& name : in_force(condition)) {
      const Value parameters = parameters_of(name, member(stages_of(condition), name));
      if (is_of_seen_tokens(name)) {
        seen.push_back({name, {}, member(parameters, "tokens")});
        continue;
      }
      if (std::ranges::count(order, name) == 0) order.push_back(name);
      add(of_stage[name], definition_of(name, parameters), parameters, c);
    }
    if (seen.empty()) continue;
    const Value parameters{std::move(seen), {}};
    add(of_stage["window"], of_seen_tokens(parameters), parameters, c);
  }
  std::vector<Variant> all;
  for (const std::string& name : order) {
    const std::vector<Variant>& some = of_stage[name];
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

std::string shown_value(const Value& value) {
  if (const std::optional<double> number = value.number()) return number_text(*number);
  const std::string words = words_of(value);
  if (character_count(words) <= longest_parameter) return words;
  if (!value.is<Value::Array>()) return shortened(words, longest_parameter);
  std::string size;
  for (const Value* at = &value; at->is<Value::Array>() && !items_of(*at).empty();
       at = &items_of(*at).front()) {
    size += (size.empty() ? "" : " × ") + std::to_string(items_of(*at).size());
  }
  return size + " numbers, in the parameters of the results";
}

std::string defaults_html(const Value& law, const std::string& formula,
                          const std::vector<ParameterDescription>& known) {
  std::string list;
  for (const auto& [key, value] : defaults_of({&law}, formula, known)) {
    list += (list.empty() ? "" : "; ") + key + " = " + value + " (default)";
  }
  return list.empty() ? "" : element("p", {{"class", "note"}}, prose(list));
}

std::string law_html(const std::string& family, const std::vector<const Value*>& laws) {
  const std::string name = text_of(member(*laws.front(), "law"));
  const LawDescription law = description_of(family, name);
  std::string formula = law.equation;
  if (family == "design" && name == "normal") {
    std::set<std::string> all;
    for (const Value* one : laws) all.insert(normal_formula(*one));
    formula = all.size() == 1 ? *all.begin()
                              : "X ~ N(mean, Σ), Σ = \"covariance, or\" Σ_{i j} = ar1^{|i - j|}";
  }
  std::string text = element("strong", escaped(name)) + ": ";
  text += formula.empty() ? with_formulas(for_pages(law.summary)) : mathml(formula);
  return text + where_html(family, name) + parameters_html(laws, formula, law.parameters);
}

std::string ensemble_formula(const Value::Array& conditions) {
  bool any = false, seen = false, kept = false;
  for (const Value& condition : conditions) {
    for (const std::string& name : in_force(condition)) {
      any = true;
      seen |= is_of_seen_tokens(name);
      kept |= name == "keep";
    }
  }
  if (!any || (!seen && !kept)) {
    return "f(x) = sum_h a_h f_h(x); f_h(x) = sum_i w_{h i} Y_i; "
           "w_{h i} = frac{K_h(X_i)}{sum_j K_h(X_j)}";
  }
  const std::string set = kept ? "S_h" : "A_h";
  return "f(x) = sum_h a_h f_h(x); f_h(x) = sum_{i ∈ " + set +
         "} ω_{h i} Y_i; ω_{h i} = frac{w_{h i}}{sum_{j ∈ " + set +
         "} w_{h j}}; w_{h i} = K_h(X_i)";
}

std::string mechanism_html(const Value::Array& conditions) {
  std::string items;
  for (const Variant& one : variants_of(conditions)) {
    const Definition& definition = one.definition;
    std::string text =
        element("strong", escaped(definition.title)) + ": " + prose(definition.words);
    const std::string where = where_of(conditions, one.conditions);
    if (!where.empty()) text += prose(" Only " + where + ".");
    if (!definition.formula.empty()) text += mathml(definition.formula, true);
    std::vector<const Value*> parameters;
    for (const Value& each : one.parameters) parameters.push_back(&each);
    items += element("li", text + parameters_html(parameters));
  }
  return items.empty() ? "" : element("ol", items);
}

}  // namespace headlab::tools
