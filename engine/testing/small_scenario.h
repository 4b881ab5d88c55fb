// SPDX-License-Identifier: Apache-2.0
/// \file The study that tests of runs simulate.
#pragma once

#include <string>
#include <vector>

#include "engine/scenario/scenario.h"
#include "engine/scenario/world.h"

namespace headlab {

/// Three heads of one dimension on 60 points, 1500 replicates, with changes in the way of --set.
inline Scenario small_scenario(const std::vector<std::string>& sets = {}) {
  return parse_scenario(
      World{
          .n = "60",
          .design = "{ law = 'normal', dim = 4 }",
          .regression = "{ law = 'additive', amplitude = [1, 1, 0, 0], frequency = [1, 2, 1, 1] }",
          .noise = "{ law = 'normal', sd = 0.5 }",
          .heads = "count = 3\ndim = 1\nsubspaces = { law = 'equiangular', angle = 1.0 }",
          .kernel = "{ law = 'gaussian', bandwidth = 0.4 }",
          .queries = "law = 'design'\ncount = 5",
          .run = "seed = 3\nreplicates = 1500"}
          .text(),
      "small.toml", sets);
}

}  // namespace headlab
