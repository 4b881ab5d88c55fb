// SPDX-License-Identifier: Apache-2.0
/// \file A scenario of three weighted heads at two queries, whose exact theory takes little time.
#pragma once

#include <string>

#include "engine/scenario/world.h"

namespace headlab {

inline std::string three_heads(int replicates) {
  const World world{
      .n = "4000",
      .design = R"({ law = "normal", dim = 3 })",
      .regression =
          R"({ law = "cosines", amplitude = [1.0], frequency = [[1.0, -0.5, 0.3]], phase = [0.3] })",
      .noise = R"({ law = "normal", sd = 0.5 })",
      .heads =
          "count = 3\ndim = 1\nsubspaces = { law = \"haar\" }\nweights = { law = \"explicit\", "
          "values = [0.6, 0.1, 0.2] }",
      .kernel = R"({ law = "gaussian", bandwidth = 0.6 })",
      .points = "[[0, 0, 0], [0.5, -0.2, 0.4]]",
      .run = "seed = 7\nreplicates = " + std::to_string(replicates)};
  return world.text();
}

}  // namespace headlab
