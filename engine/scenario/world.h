// SPDX-License-Identifier: Apache-2.0
/// \file Small scenarios, part by part in TOML.
#pragma once

#include <string>
#include <vector>

#include "engine/scenario/scenario.h"

namespace headlab {

/// A scenario with one head on one coordinate, but for what is replaced.
struct World {
  std::string n = "1";
  std::string design = R"({ law = "normal", dim = 1 })";
  std::string regression = R"({ law = "zero" })";
  std::string noise = R"({ law = "normal", sd = 0.1 })";
  std::string heads = "count = 1\ndim = 1\nsubspaces = { law = \"aligned\" }";
  std::string kernel = R"({ law = "gaussian", bandwidth = 1.0 })";
  std::string points = "[[0.0]]";                                ///< queries
  std::string queries = "law = \"points\"\npoints = " + points;  ///< or all of [queries]
  std::string run = {};  ///< keys of [run]; empty: none of it
  std::string sweep = {};

  std::string text() const {
    const auto section = [](const std::string& name, const std::string& keys) {
      return keys.empty() ? "" : "[" + name + "]\n" + keys + "\n";
    };
    return "[scenario]\nname = \"world\"\n" +
           section("data", "n = " + n + "\ndesign = " + design + "\nregression = " + regression +
                               "\nnoise = " + noise) +
           section("heads", heads + "\nkernel = " + kernel) + section("queries", queries) +
           section("run", run) + section("sweep", sweep);
  }
  Condition condition(const std::vector<std::string>& sets = {}) const {
    return parse_scenario(text(), "world.toml", sets).conditions.at(0);
  }
};

}  // namespace headlab
