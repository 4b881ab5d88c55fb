// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration_json.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

Json rate_json(const CalibrationRate& rate) {
  const bool known = rate.trials > 0;
  return {{"measured", measured_text(rate.measured)},
          {"what", rate.what},
          {"effect", rate.effect},
          {"count", rate.count},
          {"trials", rate.trials},
          {"rate", known ? Json(rate.rate()) : Json()},
          {"interval", known ? Json({rate.interval.low, rate.interval.high}) : Json()},
          {"required", rate.requirement()},
          {"pass", known ? Json(rate.pass()) : Json()}};
}

}  // namespace

std::string calibration_json(const Calibration& calibration, const Provenance& program) {
  Json rates = Json::array();
  for (const CalibrationRate& rate : calibration.rates) rates.push_back(rate_json(rate));
  const std::optional<bool> pass = calibration.pass();
  const Json json = {{"headlab",
                      {{"version", program.version},
                       {"git", program.git},
                       {"backend", calibration.machine.backend},
                       {"simd", calibration.machine.simd},
                       {"device", calibration.machine.device},
                       {"threads", calibration.machine.threads}}},
                     {"complete", calibration.outcome.complete},
                     {"confidence", calibration_confidence},
                     {"pass", pass ? Json(*pass) : Json()},
                     {"seconds", calibration.outcome.seconds},
                     {"rates", std::move(rates)}};
  return json.dump(2) + "\n";
}

}  // namespace headlab
