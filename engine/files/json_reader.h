// SPDX-License-Identifier: Apache-2.0
/// \file JSON that comes from elsewhere.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace headlab {

/// Arrays and objects inside one another, more than any file of headlab or of a model has.
inline constexpr int max_json_depth = 100;

/// True where the brackets of a JSON text are more than max_json_depth deep.
bool is_nested_too_deeply(std::string_view text);

/// A JSON text as a tree; is_discarded() where it is none, or is nested too deeply: what copies,
/// compares and prints a tree needs stack for each level.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (is_nested_too_deeply(text)) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

}  // namespace headlab
