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

}  // namespace headlab
