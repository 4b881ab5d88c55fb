// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/theory_json.h"

#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"

namespace headlab {
namespace {

struct TheoryDocument {
  const std::vector<TheoryGrowth>& growths;
  const std::string& limits;
  const Provenance& program;

  template <class Visitor>
  void fields(Visitor& visit) const {
    const TheoryGrowth& first = growths.at(0);
    visit("headlab", MadeBy{program}, "what made the document");
    visit("source", first.mean == TheoryMean::condition ? "exact" : "theory", "closed forms used");
    visit("rule", rule_name(first.rule), "bandwidth rule");
    visit("limits", limits, "what the figures are means over");
    std::vector<TheoryStudy> studies;
    for (const TheoryGrowth& growth : growths) {
      studies.insert(studies.end(), growth.studies.begin(), growth.studies.end());
    }
    visit("studies", studies, "one for each budget and n", {.item = "study"});
    visit("growth", growths, "one for each budget", {.item = "growth"});
  }
};

}  // namespace

std::string theory_json(const std::vector<TheoryGrowth>& growths, const std::string& limits,
                        const Provenance& program) {
  return json_text(TheoryDocument{growths, limits, program});
}

}  // namespace headlab
