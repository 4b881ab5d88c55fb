// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/cli/options.h"

namespace headlab::tools {

/// The arguments of `headlab allocate`, as written.
struct AllocateArguments {
  std::optional<std::string> budget;  ///< one number or several, "8,16,32"
  std::optional<std::string> dims;    ///< d_k to choose from, "16,32"; all without one
  std::optional<std::string> n;       ///< likewise; the scenario's without one
  std::string rule = "fixed";         ///< of a map several: "fixed,rate"
  bool growth = false;
  bool map = false;
  std::string source = "simulation";  ///< or "theory"
  RunArguments run;  ///< what every command that simulates takes; `scenario` is that of --data
};

}  // namespace headlab::tools
