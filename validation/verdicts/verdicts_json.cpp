// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"
#include "validation/verdicts/calibration.h"
#include "validation/verdicts/validate.h"

namespace headlab {

std::string verdicts_json(const Validation& validation, const Provenance& program) {
  return json_text(MadeDocument{MadeBy{program, validation.machine},
                                [&](auto& visit) { validation.fields(visit); }});
}

std::string calibration_json(const Calibration& calibration, const Provenance& program) {
  return json_text(MadeDocument{MadeBy{program, calibration.machine},
                                [&](auto& visit) { calibration.fields(visit); }});
}

}  // namespace headlab
