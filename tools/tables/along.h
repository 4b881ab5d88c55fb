// SPDX-License-Identifier: Apache-2.0
/// \file Figures along a swept key of earlier results: curves, slopes, the lowest, crossings.
#pragma once

#include <optional>
#include <string>

#include "engine/results/stored_figures.h"

namespace headlab::tools {

struct AlongRequest {
  std::string over;                          ///< key
  std::optional<std::string> min_over = {};  ///< second key, over which the least is taken
  std::string figure = "mse";
  bool slope = false;
};

/// What is seen along a key.
struct Along {
  std::string json;
  std::string text;
};

/// Throws InvalidInput for keys and figures that the results do not have, and for results without
/// nodes or common draws.
Along along(const StoredResults& results, const AlongRequest& request);

}  // namespace headlab::tools
