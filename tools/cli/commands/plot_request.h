// SPDX-License-Identifier: Apache-2.0
/// \file What `headlab plot` is asked.
#pragma once

#include <optional>
#include <string>

#include "tools/cli/options.h"

namespace headlab::tools {

struct PlotArguments {
  std::string result;
  std::string figure;
  std::optional<std::string> x, y, group, min_over, log;
  Texts nested;  ///< keys, the outermost first
  Texts where;
  double width = 170;  ///< mm
  std::string out = "-";

  void list(Options& options);
  /// The first of the options of swept keys that is given, "" where none is.
  std::string option_of_keys() const;
};

}  // namespace headlab::tools
