// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/law/subspaces/file.h"

#include "engine/scenario/law/subspaces/explicit.h"

namespace headlab {

ExplicitSubspaces FileSubspaces::explicit_law() const {
  if (!given) throw ParameterError("path", "file has not been read");
  ExplicitSubspaces law = *given;
  law.orthonormalise = orthonormalise;
  return law;
}

void FileSubspaces::check(const Sizes& sizes) const {
  try {
    explicit_law().check(sizes);
  } catch (const ParameterError& error) {
    if (error.key() != "matrices") throw;
    throw ParameterError("path", std::string("file: ") + error.what());
  }
}

Subspaces FileSubspaces::generate(const Sizes& sizes) const {
  return explicit_law().generate(sizes);
}

}  // namespace headlab
