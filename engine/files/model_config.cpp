// SPDX-License-Identifier: Apache-2.0
#include "engine/files/model_config.h"

#include <algorithm>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/words.h"

namespace headlab {

namespace {

constexpr std::size_t max_config_bytes = std::size_t{16} << 20;
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
    fail("model_type", "is " + text(*at) + suggestion(word, types) +
                           " - other models compute attention in other ways");
  }

 private:
  static std::string text(const Value& value) {
    return one_line(to_json(value, {.lines = 0, .ascii = true}), 60);
  }
  const Value& config_;
  const std::string& path_;
};

/// JSON as Python writes it has NaN and infinities, which stand where no number is needed:
/// `instead` of them, as long where it is short.
std::string without_nonfinite(std::string text, const std::string& instead) {
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && in_string) {
      ++at;
    } else if (text[at] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (text.compare(at, word.size(), word) != 0) continue;
        std::string as_long = instead;
        as_long.resize(std::max(as_long.size(), word.size()), ' ');
        text.replace(at, word.size(), as_long);
      }
    }
  }
  return text;
}

}  // namespace

ModelConfig read_model_config(const std::string& path, const Architecture* architecture) {
  const std::string text = read_file(path, max_config_bytes);
  const std::optional<Value> json = parse_json(without_nonfinite(text, "null"));
  if (!json) reject({path}, "", "is no JSON" + end_of_json(without_nonfinite(text, "0")));
  if (!json->is<Value::Members>()) reject({path}, "", "is no JSON object");
  const ConfigReader config(*json, path);
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
  if (!members_of(member(*json, "pruned_heads")).empty()) {
    config.fail("pruned_heads", "is not empty: layers have fewer heads than this file says");
  }
  const auto heads = config.count(architecture->heads, max_model_heads);
  if (!heads) config.fail(architecture->heads, "is missing");
  return {
      .architecture = architecture,
      .counts = {.heads = *heads,
                 .kv_heads = config.count(architecture->kv_heads, max_model_heads).value_or(*heads),
                 .layers = config.count(architecture->layers, max_model_layers),
                 .head_dim = config.head_dim(*architecture, *heads),
                 .dimensions = config.count(architecture->hidden, max_width)}};
}

}  // namespace headlab
