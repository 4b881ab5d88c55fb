// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/parameter.h"

namespace headlab {

/// Statistics as they are simulated.
struct NoControls : NoParameters {
  static constexpr const char* name = "none";
  static constexpr const char* summary = "figures as they are simulated";
};

}  // namespace headlab
