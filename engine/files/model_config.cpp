// SPDX-License-Identifier: Apache-2.0
#include "engine/files/model_config.h"

#include <algorithm>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/json_reader.h"
#include "engine/files/table_file.h"
#include "engine/files/words.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_config_bytes = std::size_t{16} << 20;

/// Reads members of config.json.
class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& path) : config_(config), path_(path) {}

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    reject({path_}, key, problem);
  }

  std::optional<int> count(const std::string& key, int most) const {
    const auto at = config_.find(key);
    if (key.empty() || at == config_.end() || at->is_null()) return {};
    if (!at->is_number_integer() || *at < 1 || *at > most) {
      fail(key, "is " + text(*at) + ", needs a whole number from 1 to " + std::to_string(most));
    }
    return at->get<int>();
  }

  /// Refuses another value than one of those allowed.
  void require(const ConfigRequirement& requirement) const {
    const auto at = config_.find(requirement.key);
    if (at == config_.end()) return;
    for (const std::string& value : requirement.allowed) {
      if (*at == Json::parse(value)) return;
    }
    fail(requirement.key, "is " + text(*at) + " (allowed: " + listed(requirement.allowed) + ") - " +
                              requirement.why);
  }

  /// The family that model_type names.
  const Architecture& architecture() const {
    const auto at = config_.find("model_type");
    if (at == config_.end()) {
      fail("model_type", "is missing - say by --arch which names the tensors have (allowed: " +
                             listed(architecture_names()) + ")");
    }
    const std::string word = at->is_string() ? at->get<std::string>() : "";
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
  static std::string text(const Json& value) {
    return one_line(value.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
  }
  const Json& config_;
  const std::string& path_;
};

}  // namespace

ModelConfig read_model_config(const std::string& path, const Architecture* architecture) {
  const Json json = parse_json(read_file(path, max_config_bytes));
  if (!json.is_object()) reject({path}, "", "is no JSON object");
  const ConfigReader config(json, path);
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
  const auto heads = config.count(architecture->heads, max_model_heads);
  if (!heads) config.fail(architecture->heads, "is missing");
  return {
      .architecture = architecture,
      .counts = {.heads = *heads,
                 .kv_heads = config.count(architecture->kv_heads, max_model_heads).value_or(*heads),
                 .layers = config.count(architecture->layers, max_model_layers),
                 .head_dim = config.count(architecture->head_dim, 1 << 16)}};
}

}  // namespace headlab
