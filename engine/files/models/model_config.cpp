// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/model_config.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/words.h"

namespace headlab {

namespace {

constexpr int max_width = 1 << 16;

/// Reads members of config.json.
class ConfigReader {
 public:
  ConfigReader(const Value& config, const std::string& path) : config_(config), path_(path) {}

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    reject({path_}, key, problem);
  }

  std::optional<int> count(const std::string& key, int most) const {
    const Value& given = member(config_, key);
    if (key.empty() || given.is<Value::Null>()) return {};
    const std::optional<std::uint64_t> count = count_of(given);
    if (!count || *count < 1 || *count > static_cast<std::uint64_t>(most)) {
      fail(key, "is " + text(given) + ", needs a whole number from 1 to " + std::to_string(most));
    }
    return static_cast<int>(*count);
  }

  /// The dimension of a head, as models of this family find it.
  std::optional<int> head_dim(const Architecture& family, int heads) const {
    if (const auto given = count(family.head_dim, max_width)) return given;
    if (family.usual_head_dim > 0) return family.usual_head_dim;
    const std::optional<int> width = count(family.hidden, max_width);
    if (width && *width % heads != 0) {
      fail(family.hidden, "is " + std::to_string(*width) + ", which the " + std::to_string(heads) +
                              " heads do not divide");
    }
    return width ? std::optional(*width / heads) : std::nullopt;
  }

  /// A number above 0; 0 where there is none.
  double positive(const Value& table, const std::string& key) const {
    const Value& given = member(table, key);
    if (key.empty() || given.is<Value::Null>()) return 0;
    const double number = number_of(given);
    if (!(number > 0 && number < 1e100))
      fail(key, "is " + text(given) + ", needs a number above 0");
    return number;
  }

  /// What rotary positions multiply queries and keys by.
  double rotary_factor() const {
    double factor = 1;
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const Value& table = member(config_, key);
      bool nested = false;
      // A table for each kind of layer, or one.
      for (const auto& one : members_of(table)) {
        if (!one.value.is<Value::Members>()) continue;
        nested = true;
        if (rotary_factor_of(one.value) != 1) {
          fail(key,
               "multiplies queries and keys of some layers alone - choose layers with "
               "--query and --key");
        }
      }
      if (!nested) factor *= rotary_factor_of(table);
      if (factor != 1) break;  // both names may say the same
    }
    return factor;
  }

  /// Refuses another value than one of those allowed.
  void require(const ConfigRequirement& requirement) const {
    const Value* at = config_.find(requirement.key);
    if (at == nullptr) return;
    for (const std::string& value : requirement.allowed) {
      if (*at == parse_json(value)) return;
    }
    fail(requirement.key, "is " + text(*at) + " (allowed: " + listed(requirement.allowed) + ") - " +
                              requirement.why);
  }

  /// The family that model_type names.
  const Architecture& architecture() const {
    const Value* at = config_.find("model_type");
    if (at == nullptr) {
      fail("model_type", "is missing - say by --arch which names the tensors have (allowed: " +
                             listed(architecture_names()) + ")");
    }
    const std::string word = text_of(*at);
    if (const Architecture* known = architecture_of_model_type(word)) return *known;
    std::vector<std::string> types;
    for (const Architecture& one : architectures()) {
      for (const std::string& type : one.model_types()) types.push_back(type);
    }
    std::ranges::sort(types);
    fail("model_type",
         "is " + text(*at) + suggestion(word, types) +
             " - other models compute attention in other ways: name their tensors with "
             "--query and --key");
  }

 private:
  double rotary_factor_of(const Value& table) const {
    std::string law = text_of(member(table, "rope_type"));
    if (law.empty()) law = text_of(member(table, "type"));
    const bool yarn = law == "yarn";
    if (!yarn && law != "longrope" && law != "su") return 1;
    double part = positive(table, "partial_rotary_factor");
    if (part == 0) part = positive(config_, "partial_rotary_factor");
    double own = positive(table, "attention_factor");
    if (own == 0) {
      const double most = positive(config_, "max_position_embeddings");
      // Phi-3 keeps the length before outside.
      double before = positive(config_, "original_max_position_embeddings");
      if (before == 0) before = positive(table, "original_max_position_embeddings");
      if (before == 0) before = most;
      double factor = positive(table, "factor");
      if (factor == 0 || (!yarn && before != most)) factor = before > 0 ? most / before : 0;
      if (!(factor > 0)) fail("rope_scaling", "has no factor and no attention_factor");
      own = yarn                         ? yarn_factor(table, factor)
            : factor <= 1 || before <= 1 ? 1
                                         : std::sqrt(1 + std::log(factor) / std::log(before));
    }
    if (own != 1 && part != 0 && part != 1) {
      fail("rope_scaling", "multiplies a part of each query and key, which no temperature does");
    }
    return own;
  }

  double yarn_factor(const Value& table, double factor) const {
    const auto of = [&](double m) { return factor <= 1 ? 1 : 0.1 * m * std::log(factor) + 1; };
    const double all = positive(table, "mscale_all_dim"), one = positive(table, "mscale");
    return all > 0 && one > 0 ? of(one) / of(all) : of(1);
  }

  static std::string text(const Value& value) {
    return one_line(to_json(value, {.lines = 0, .ascii = true}), 60);
  }
  const Value& config_;
  const std::string& path_;
};

/// JSON as Python writes it has NaN and infinities, which stand where no number is needed: as
/// texts, which no key that needs a number takes. With `instead`, of one character, all keeps its
/// place.
std::string without_nonfinite(const std::string& text, const std::string& instead = "") {
  std::string json;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') in_string = !in_string;
    std::string_view found;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!in_string && text.compare(at, word.size(), word) == 0) found = word;
    }
    if (!found.empty()) {
      std::string value = instead.empty() ? '"' + std::string(found) + '"' : instead;
      value.resize(std::max(value.size(), found.size()), ' ');
      json += value;
      at += found.size() - 1;
      continue;
    }
    json += text[at];
    if (text[at] == '\\' && in_string && at + 1 < text.size()) json += text[++at];
  }
  return json;
}

}  // namespace

ModelConfig read_model_config(const std::string& path, const Architecture* architecture) {
  const std::string contents = read_file(path, max_config_bytes);
  const std::string in_place = without_nonfinite(contents, "0");
  std::optional<Value> json = parse_json(in_place);
  if (json) json = parse_json(without_nonfinite(contents));
  if (!json) reject({path}, "", "is not JSON" + end_of_json(in_place));
  if (!json->is<Value::Members>()) reject({path}, "", "is not a JSON object");
  // A model of text and images has its text model inside.
  const Value& text = member(*json, "text_config");
  const Value& model = text.is<Value::Members>() ? text : *json;
  const ConfigReader config(model, path);
  if (architecture == nullptr) {
    architecture = &config.architecture();
  } else {
    ConfigRequirement type{.key = "model_type",
                           .allowed = {},
                           .why = "leave out --arch to take the family of config.json"};
    for (const std::string& word : architecture->model_types()) {
      type.allowed.push_back("\"" + word + "\"");
    }
    config.require(type);
  }
  for (const ConfigRequirement& requirement : architecture->required) config.require(requirement);
  if (!members_of(member(model, "pruned_heads")).empty()) {
    config.fail("pruned_heads", "is not empty: layers have fewer heads than this file says");
  }
  const auto heads = config.count(architecture->heads, max_model_heads);
  if (!heads) config.fail(architecture->heads, "is missing");
  HeadCounts counts{
      .heads = *heads,
      .kv_heads = config.count(architecture->kv_heads, max_model_heads).value_or(*heads),
      .layers = config.count(architecture->layers, max_model_layers),
      .head_dim = config.head_dim(*architecture, *heads),
      .dimensions = config.count(architecture->hidden, max_width)};
  if (architecture->groups != nullptr) counts.kv_heads = architecture->groups(model, *heads);
  if (architecture->has_own_temperature()) {
    const bool divided = !architecture->scaled_by.empty();
    const std::string& key = divided ? architecture->scaled_by : architecture->multiplier;
    const double number = config.positive(model, key);
    if (number == 0) config.fail(key, "is missing");
    counts.temperature = divided ? std::sqrt(number) : 1 / number;
  }
  if (architecture->rotary) counts.rotary_factor = config.rotary_factor();
  return {.architecture = architecture, .counts = counts};
}

}  // namespace headlab
