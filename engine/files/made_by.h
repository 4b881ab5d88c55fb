// SPDX-License-Identifier: Apache-2.0
/// \file What made a document: the program, the machine and the seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/files/provenance.h"

namespace headlab {

/// What a run was computed on.
struct MachineRecord {
  std::string backend, simd, device;
  int threads = 1;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("backend", backend, "backend");
    visit("simd", simd, "SIMD target");
    visit("device", device, "processor or GPU");
    visit("threads", threads, "threads");
  }
};

/// The machine of a run that has the members of MachineRecord.
template <class Run>
MachineRecord machine_of(const Run& run) {
  return {run.backend, run.simd, run.device, run.threads};
}

/// Head of a document; machine and seed where they mean something.
struct MadeBy {
  const Provenance& program;
  std::optional<MachineRecord> machine = {};
  std::optional<std::uint64_t> seed = {};

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("version", program.version, "version of headlab");
    visit("git", program.git, "commit");
    if (machine) machine->fields(visit);
    if (seed) visit("seed", *seed, "seed of all conditions");
  }
};

}  // namespace headlab
