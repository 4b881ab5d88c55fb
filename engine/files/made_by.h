// SPDX-License-Identifier: Apache-2.0
/// \file What made a document: the program, the machine and the seed.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/files/provenance.h"

namespace headlab {

/// Head of a document; machine and seed where they mean something.
struct MadeBy {
  const Provenance& program;
  std::optional<Machine> machine = {};
  std::optional<std::uint64_t> seed = {};

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("version", program.version, "version of headlab");
    visit("git", program.git, "commit");
    if (machine) machine->fields(visit);
    if (seed) visit("seed", *seed, "seed of all conditions");
  }
};

/// A document: what made it, and what `body` visits.
template <class Body>
struct MadeDocument {
  MadeBy made_by;
  Body body;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("headlab", made_by, "what made the document");
    body(visit);
  }
};

template <class Body>
MadeDocument(MadeBy, Body) -> MadeDocument<Body>;

}  // namespace headlab
