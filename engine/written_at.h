// SPDX-License-Identifier: Apache-2.0
/// \file Refusals that turn up after a scenario was read, at the place where the key was written.
#pragma once

#include <sstream>
#include <string>

#include "engine/document.h"
#include "engine/error.h"
#include "engine/scenario.h"

namespace headlab {

/// Where `key` ("data.n") stands, or else the innermost table on the way to it that is there; empty
/// for a scenario that was not read from a text.
inline std::string written_at(const Scenario& scenario, const std::string& key) {
  const Value* value = &scenario.parameters;
  std::istringstream path(key);
  std::string name;
  while (std::getline(path, name, '.')) {
    const Value* member = value->find(name);
    if (member == nullptr) break;
    value = member;
  }
  return value->location.source.empty() ? "" : value->location.text();
}

/// Throws Refused("WHERE: KEY: PROBLEM").
[[noreturn]] inline void refuse_at(const Scenario& scenario, const std::string& key,
                                   const std::string& problem) {
  const std::string where = written_at(scenario, key);
  throw Refused((where.empty() ? "" : where + ": ") + key + ": " + problem);
}

}  // namespace headlab
