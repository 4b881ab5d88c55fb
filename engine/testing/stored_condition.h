// SPDX-License-Identifier: Apache-2.0
/// \file What a file of results has of a condition, without the file.
#pragma once

#include <string>

#include "engine/files/json_writer.h"
#include "engine/results/stored_figures.h"
#include "engine/run/run.h"

namespace headlab {

inline StoredCondition stored_condition(const ConditionResult& one) {
  return {.parameters = to_json(one.condition->parameters.tree()),
          .plan_sha256 = std::string(),
          .layout = one.tree.layout(),
          .nodes = one.tree.nodes(),
          .head_weights = one.plan.head_weights,
          .query_points = one.plan.query_points,
          .truth = one.plan.truth};
}

}  // namespace headlab
