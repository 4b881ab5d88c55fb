// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"
#include "validation/compression/compression.h"

namespace headlab {
namespace {

struct CompressionDocument {
  const Compression& compression;
  const std::string& file;
  const Provenance& program;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("headlab", MadeBy{program, {}, compression.seed}, "what made the document");
    visit("file", file, "file of the heads");
    compression.fields(visit);
  }
};

}  // namespace

std::string compression_json(const Compression& compression, const std::string& file,
                             const Provenance& program) {
  return json_text(CompressionDocument{compression, file, program}, 0);
}

}  // namespace headlab
