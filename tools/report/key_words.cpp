// SPDX-License-Identifier: Apache-2.0
#include "tools/report/key_words.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "engine/scenario/law_reader.h"

namespace headlab::tools {

std::string in_words(std::string name) {
  const bool is_name = std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == ' '; });
  if (is_name && name != "d_k" && name != "d_v") std::ranges::replace(name, '_', ' ');
  return name;
}

std::string words_of_key(const std::string& key) {
  static const std::map<std::string, std::string> words = {
      {"data.n", "training points n"},          {"heads.count", "number of heads H"},
      {"heads.dim", "dimension of a head d_k"}, {"heads.value_dim", "dimension of a value d_v"},
      {"layers.count", "number of layers L"},   {"tokens.n", "tokens n"}};
  if (const auto found = words.find(key); found != words.end()) return found->second;
  std::string text = in_words(key.substr(key.rfind('.') + 1));
  if (text == "sd") text = "standard deviation";
  if (text == "df") text = "degrees of freedom";
  return text;
}

namespace {

/// " (rad)" of a parameter that its documentation gives in radians; of a key that is none nothing.
std::string unit_of_key(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  if (dot == std::string::npos) return "";
  const std::string family = key.substr(0, dot), name = key.substr(dot + 1);
  for (const LawDescription& law : describe_laws()) {
    if (!("." + family).ends_with("." + law.family)) continue;
    for (const ParameterDescription& one : law.parameters) {
      // "radians a unit of x" is another unit.
      const std::size_t at = one.doc.find("radians");
      if (one.key == name && at != std::string::npos && one.doc.compare(at, 9, "radians a") != 0) {
        return " (rad)";
      }
    }
  }
  return "";
}

}  // namespace

std::string axis_title(const std::string& key) {
  return words_of_key(key) + unit_of_key(key);
}

std::string symbol_of_count(const std::string& key) {
  const std::string words = words_of_key(key);
  return key.ends_with(".count") && words != "count" ? words.substr(words.rfind(' ') + 1) : "";
}

std::string figure_words(const std::string& figure) {
  static const std::map<std::string, std::string> known = {
      {"mse", "mean squared error"},
      {"head_variance_mean", "mean variance V of heads"},
      {"head_covariance_mean", "mean covariance C of pairs of heads"},
      {"index_output", "output diversity"},
      {"index_weights", "diversity of weights"}};
  const auto found = known.find(figure);
  return found != known.end() ? found->second : in_words(figure);
}

}  // namespace headlab::tools
