// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/verdicts_json.h"

#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"

namespace headlab {
namespace {

struct VerdictsDocument {
  const Validation& validation;
  const Provenance& program;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("headlab", MadeBy{program, validation.machine}, "what made the document");
    validation.fields(visit);
  }
};

}  // namespace

std::string verdicts_json(const Validation& validation, const Provenance& program) {
  return json_text(VerdictsDocument{validation, program});
}

}  // namespace headlab
