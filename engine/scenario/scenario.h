// SPDX-License-Identifier: Apache-2.0
/// \file A scenario: the conditions to simulate, as read from a TOML file.
#pragma once

#include <string>
#include <vector>

#include "engine/scenario/condition.h"
#include "engine/scenario/data_arrays.h"
#include "engine/scenario/sweep.h"

namespace headlab {

/// What stands in place of the file's name, in messages and in results.
inline constexpr const char* standard_input_name = "<stdin>";

/// A scenario file with its sweep unrolled.
struct Scenario {
  std::string file;
  std::string text;                ///< of the file, for the record
  std::vector<std::string> sets;   ///< --set arguments applied
  std::vector<std::string> swept;  ///< swept keys, in the order of the file; empty without a sweep
  std::vector<Condition> conditions;     ///< at least one; crossed sweeps vary the last key fastest
  std::vector<std::string> inputs = {};  ///< paths of all files that were read
};

/// Reads a scenario file, applies the `--set KEY=VALUE` arguments and unrolls the sweep. Throws
/// InvalidInput with one line that says where, which key, what is wrong and what is allowed. All
/// conditions are checked before any is returned.
Scenario read_scenario(const std::string& file, const std::vector<std::string>& sets = {},
                       const ReadHooks& hooks = {});

/// The same for a text already in memory; relative paths in it are relative to `directory`.
Scenario parse_scenario(const std::string& text, const std::string& source,
                        const std::vector<std::string>& sets = {},
                        const std::string& directory = ".", const ReadHooks& hooks = {});

/// The same for a document in memory, whose values may have no location. Paths among `arrays` mean
/// these.
Scenario read_scenario(Value document, const std::string& source,
                       const std::vector<std::string>& sets, const std::string& directory,
                       const DataArrays& arrays, const ReadHooks& hooks = {});

/// The document that a scenario was read from, with its --set arguments applied.
Value scenario_tree(const Scenario& scenario);

/// The TOML text of a scenario after --set: keys that were not given stand at their defaults, and
/// paths are absolute. It has the conditions of the scenario, and their bits. Laws that are values
/// of a sweep stay as written.
std::string resolved_toml(const Scenario& scenario);

/// Throws InvalidInput where of two --set arguments the second undoes the first: it sets the same
/// key, or a table after one of its parts. Readers of scenarios let the last one count.
void reject_undone(const std::vector<std::string>& sets);

}  // namespace headlab
