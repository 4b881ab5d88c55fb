// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration_json.h"

#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"

namespace headlab {
namespace {

struct CalibrationDocument {
  const Calibration& calibration;
  const Provenance& program;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("headlab", MadeBy{program, calibration.machine}, "what made the document");
    calibration.fields(visit);
  }
};

}  // namespace

std::string calibration_json(const Calibration& calibration, const Provenance& program) {
  return json_text(CalibrationDocument{calibration, program});
}

}  // namespace headlab
