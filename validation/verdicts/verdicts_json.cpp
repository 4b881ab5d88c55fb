// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/verdicts_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

Json number(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

Json figure_json(const Estimate& figure) {
  return {{"value", number(figure.value)}, {"mcse", number(figure.mcse)}};
}

Json counterexample_json(const Counterexample& counterexample) {
  Json closed = Json::object();
  for (const auto& [name, values] : counterexample.closed_form) {
    closed[name] = {number(values.first), number(values.second)};
  }
  return {{"scenario", counterexample.scenario},
          {"seed", counterexample.seed},
          {"replicates", counterexample.replicates},
          {"mse", {figure_json(counterexample.first_mse), figure_json(counterexample.second_mse)}},
          {"difference", figure_json(counterexample.difference)},
          {"z", number(counterexample.z)},
          {"closed_form", std::move(closed)}};
}

Json row_json(const VerdictRow& row) {
  Json json = {{"claim", row.claim},
               {"form", row.form},
               {"index", row.index.empty() ? Json() : Json(row.index)},
               {"kernel", row.kernel},
               {"regression", row.regression},
               {"signal", row.signal},
               {"statement", row.statement},
               {"assumptions", row.assumptions},
               {"refuted_by", row.refuted_by},
               {"verdict", verdict_text(row.verdict)},
               {"expected", row.expected},
               {"complete", row.complete},
               {"alpha", verdict_alpha},
               {"comparisons", row.comparisons},
               {"margin", row.margin}};
  const bool examined = row.comparisons > 0;
  json["effect"] = examined ? figure_json(row.decisive.effect) : Json();
  if (examined) json["effect"]["of"] = row.decisive.what;
  json["replicates"] = row.replicates;
  json["replicates_needed"] =
      row.verdict == Verdict::unresolved ? number(row.replicates_needed) : Json();
  json["note"] = row.note;
  json["certificate"] = row.counterexample ? counterexample_json(*row.counterexample) : Json();
  json["scenario"] = row.scenario;
  json["seconds"] = row.seconds;
  json["replay"] = row.replay;
  return json;
}

}  // namespace

std::string verdicts_json(const Validation& validation, const Provenance& program) {
  Json claims = Json::array();
  for (const VerdictRow& row : validation.rows) claims.push_back(row_json(row));
  const Json json = {{"headlab",
                      {{"version", program.version},
                       {"git", program.git},
                       {"backend", validation.machine.backend},
                       {"simd", validation.machine.simd},
                       {"device", validation.machine.device},
                       {"threads", validation.machine.threads}}},
                     {"complete", validation.outcome.complete},
                     {"alpha", verdict_alpha},
                     {"comparisons", validation.comparisons},
                     {"seconds", validation.outcome.seconds},
                     {"claims", std::move(claims)}};
  return json.dump(2) + "\n";
}

}  // namespace headlab
