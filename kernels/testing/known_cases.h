// SPDX-License-Identifier: Apache-2.0
/// \file Cases with known answers, of known-answers.json and the files known-answers-NAME.json.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"

namespace headlab::test {

/// What known-answers.json has under a name.
inline nlohmann::json known(const std::string& name) {
  return nlohmann::json::parse(std::ifstream(known_answers())).at(name);
}

/// The cases of known-answers-NAME.json of one kind, all without.
inline std::vector<nlohmann::json> known_cases(const std::string& name,
                                               const std::string& kind = "") {
  const auto folder = std::filesystem::path(known_answers()).parent_path();
  const auto all =
      nlohmann::json::parse(std::ifstream(folder / ("known-answers-" + name + ".json")));
  std::vector<nlohmann::json> found;
  for (const auto& known : all["cases"]) {
    if (kind.empty() || known["kind"] == kind) found.push_back(known);
  }
  return found;
}

}  // namespace headlab::test
