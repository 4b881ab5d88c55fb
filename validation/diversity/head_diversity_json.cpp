// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"
#include "validation/diversity/alike_heads.h"

namespace headlab {
namespace {

struct Document {
  const HeadDiversity& diversity;
  const AlikeHeads& alike;
  const std::string& file;
  const Provenance& program;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("headlab", MadeBy{program, {}, diversity.seed}, "what made the document");
    visit("file", file, "file of the heads");
    diversity.fields(visit);
    visit("alike", alike, "how alike the heads of a layer are");
  }
};

}  // namespace

std::string head_diversity_json(const HeadDiversity& diversity, const AlikeHeads& alike,
                                const std::string& file, const Provenance& program) {
  return json_text(Document{diversity, alike, file, program}, 0);
}

}  // namespace headlab
