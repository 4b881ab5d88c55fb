// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/law/sequence/sequence.h"

#include <string>
#include <variant>

#include "kernels/counted.h"
#include "kernels/laws.h"
#include "kernels/plan.h"

namespace headlab {

void Ar1Sequence::check(const SequenceSetting& setting) const {
  if (!std::holds_alternative<NormalDesign>(setting.design)) {
    throw ParameterError("law", "is \"ar1\", which needs a design of law \"normal\"");
  }
}

void Ar1Sequence::apply(Plan& plan) const {
  if (!off()) plan.ar1 = Ar1(correlation);
}

void RowsSequence::check(const SequenceSetting& setting) const {
  const auto* design = std::get_if<FileDesign>(&setting.design);
  if (design == nullptr) {
    throw ParameterError("law", "is \"rows\", which needs a design of law \"file\"");
  }
  if (setting.n > design->rows.size()) {
    throw ParameterError("law", "is \"rows\", and data.n is " + std::to_string(setting.n) +
                                    ", more than the " + counted(design->rows.size(), "row") +
                                    " of the file");
  }
}

void RowsSequence::apply(Plan& plan) const {
  std::get<FileDesign::Sampler>(plan.design.own()).successive = static_cast<std::uint32_t>(plan.n);
}

}  // namespace headlab
