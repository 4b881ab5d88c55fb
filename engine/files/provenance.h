// SPDX-License-Identifier: Apache-2.0
/// \file Which program made a result.
#pragma once

#include <string>

namespace headlab {

struct Provenance {
  std::string version;     ///< of headlab, "0.1.0"
  std::string git;         ///< commit, with a mark for uncommitted changes; "unknown" outside git
  std::string compiler;    ///< "GCC 12.2.0"
  std::string build_type;  ///< "release", or "debug" where assertions are on
};

/// What this build is.
Provenance provenance();

struct Machine {
  std::string backend;  ///< "reference", "cpu", "cuda"
  std::string simd;     ///< instruction set in use, "none" without one
  std::string device;   ///< processor or GPU
  int threads = 1;

  /// "cpu/AVX2", without SIMD "reference".
  std::string text() const { return backend + (simd.empty() || simd == "none" ? "" : "/" + simd); }

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("backend", backend, "backend");
    visit("simd", simd, "SIMD target");
    visit("device", device, "processor or GPU");
    visit("threads", threads, "threads");
  }
};

struct Outcome {
  bool complete = true;      ///< everything asked for was computed
  bool interrupted = false;  ///< the caller's flag stopped it, and not its deadline
  double seconds = 0;        ///< wall time
};

}  // namespace headlab
