// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/theory_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

Json finite_number(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

Json row_json(const TheoryRow& row, bool softmax) {
  Json json = {{"heads", row.heads},
               {"dim", row.k},
               {"bandwidth", softmax ? std::sqrt(row.width) : row.width}};
  if (softmax) json["temperature"] = row.width;
  json["at_the_end"] = row.at_the_end;
  json["mse"] = row.error.mse;
  json["smooth_mse"] = row.smooth_mse;
  json["squared_bias"] = row.error.squared_bias;
  json["variance"] = row.error.variance;
  json["covariance"] = row.heads > 1 ? Json(row.error.covariance) : Json();
  return json;
}

Json best_json(const BestDimension& best) {
  return {
      {"value", best.value}, {"interpolation", best.interpolation}, {"at_the_end", best.at_end}};
}

Json study_json(const TheoryStudy& study, bool softmax) {
  Json json = {{"budget", study.budget}, {"n", study.n}, {"allocations", Json::array()}};
  for (const TheoryRow& row : study.rows) json["allocations"].push_back(row_json(row, softmax));
  const TheoryRow& best = study.rows[study.best];
  json["advice"] = {{"heads", best.heads}, {"dim", best.k}};
  json["best_dim"] = best_json(study.continuous);
  json["best_dim_of_divisors"] = best_json(study.divisors);
  return json;
}

}  // namespace

std::string theory_json(const std::vector<TheoryGrowth>& growths, const std::string& limits,
                        const Provenance& program) {
  Json json = {{"headlab", {{"version", program.version}, {"git", program.git}}},
               {"source", growths.at(0).mean == TheoryMean::scenario ? "exact" : "theory"},
               {"rule", rule_name(growths.at(0).rule)},
               {"limits", limits},
               {"studies", Json::array()},
               {"growth", Json::array()}};
  for (const TheoryGrowth& growth : growths) {
    for (const TheoryStudy& study : growth.studies) {
      json["studies"].push_back(study_json(study, growth.softmax));
    }
    Json slopes = Json::array();
    for (std::size_t i = 0; i < growth.slopes.size(); ++i) {
      slopes.push_back({{"from", growth.studies[i].n},
                        {"to", growth.studies[i + 1].n},
                        {"slope", finite_number(growth.slopes[i])}});
    }
    json["growth"].push_back({{"budget", growth.budget},
                              {"slopes", std::move(slopes)},
                              {"first_order", finite_number(growth.constants.first_order)},
                              {"condensation", finite_number(growth.constants.condensation)},
                              {"asymptotic", finite_number(growth.constants.asymptotic)},
                              {"certificate", finite_number(growth.certificate)},
                              {"change", growth.change},
                              {"seconds", growth.seconds}});
  }
  return json.dump(2) + "\n";
}

}  // namespace headlab
