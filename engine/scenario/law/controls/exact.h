// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/parameter.h"

namespace headlab {

/// Control variates whose means are known exactly (kernels/controls.h). Their coefficients are
/// fitted in a pilot study that draws from streams of its own.
struct ExactControls {
  static constexpr const char* name = "exact";
  static constexpr const char* summary = "kernel sums of known mean as control variates";

  std::uint64_t pilot = 1024;
  std::uint64_t seed = 0;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("pilot", pilot, within(1024, 65536), "replicates of the pilot, default 1024");
    visit.optional("seed", seed, "of the pilot, default 0");
  }
};

}  // namespace headlab
