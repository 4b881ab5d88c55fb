// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headlab {

/// Statistics as they are simulated.
struct NoControls {
  static constexpr const char* name = "none";
  static constexpr const char* summary = "figures as they are simulated";

  template <class Visitor>
  void parameters(Visitor&) {}
};

}  // namespace headlab
