// SPDX-License-Identifier: Apache-2.0
/// \file Scenarios of cases with known answers.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/scenario/world.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/reference/training_set.h"

namespace headlab::test {

/// JSON as TOML on one line.
inline std::string toml_line(const nlohmann::json& value) {
  if (!value.is_object()) return value.dump();
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text += (text.empty() ? "" : ", ") + key + " = " + toml_line(member);
  }
  return "{ " + text + " }";
}

/// What a case says of its points, heads and query; the rest of [run] is the caller's.
inline World known_world(const nlohmann::json& known) {
  nlohmann::json subspaces = {{"law", "explicit"}, {"matrices", known["W"]}};
  if (known.contains("query_matrices")) subspaces["query_matrices"] = known["query_matrices"];
  nlohmann::json regression = {{"law", "zero"}}, kernel = {{"law", "softmax"}};
  if (known.contains("regression")) {
    regression = known["regression"];
  } else if (known.contains("amplitude")) {
    regression["law"] = "cosines";
    for (const char* key : {"amplitude", "frequency", "phase"}) regression[key] = known[key];
  }
  if (known.contains("kernel")) {
    kernel = known["kernel"];
  } else if (known.contains("temperature")) {
    kernel["temperature"] = known["temperature"];
  } else {
    kernel = {{"law", "gaussian"}, {"bandwidth", known["bandwidth"]}};
  }
  World world{.n = known["n"].dump(),
              .design = "{ law = \"normal\", dim = " + std::to_string(known["x"].size()) + " }",
              .regression = toml_line(regression),
              .noise = "{ law = \"normal\", sd = " + known["noise_sd"].dump() + " }",
              .heads = "count = " + std::to_string(known["W"].size()) +
                       "\ndim = " + std::to_string(known["W"][0][0].size()) +
                       "\nsubspaces = " + toml_line(subspaces),
              .kernel = toml_line(kernel),
              .points = "[" + known["x"].dump() + "]"};
  if (known.contains("sequence")) world.n += "\nsequence = " + toml_line(known["sequence"]);
  if (known.contains("mechanism")) world.heads += "\nmechanism = " + toml_line(known["mechanism"]);
  return world;
}

/// The training set with the design points given.
inline TrainingSet given_sample(const nlohmann::json& known, const Plan& plan) {
  TrainingSet sample;
  for (const auto& row : known["X"]) {
    const auto x = row.get<std::vector<double>>();
    sample.x.insert(sample.x.end(), x.begin(), x.end());
    sample.regression.push_back(std::visit(
        [&](const auto& m) { return m(plan.table.exact(), x.data(), 1, 0); }, *plan.regression));
    sample.noise_sd.push_back(known["noise_sd"]);
    sample.noise.push_back(0);
  }
  return sample;
}

}  // namespace headlab::test
