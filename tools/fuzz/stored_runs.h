// SPDX-License-Identifier: Apache-2.0
/// \file Results files that edits begin with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/results/share.h"
#include "engine/scenario/scenario.h"

namespace headlab::fuzz {

/// A results file and what it is of.
struct StoredRun {
  std::string name;
  std::string bytes;
  std::shared_ptr<const Scenario> scenario;
  std::optional<Share> share = {};
};

/// One of each kind that headlab writes: run, sweep, until, redraw, controls, depth, shard; and
/// version_1.
const std::vector<StoredRun>& stored_runs();

/// Makes the file that an input says: a name of stored_runs() on the first line, then edits
/// (netcdf_edits.h). Returns the run and the path. Throws InvalidInput where the input begins
/// otherwise, or where the edits make no file.
std::pair<const StoredRun*, std::string> edited_run(const std::string& input);

/// The words of such inputs.
std::vector<std::string> words_of_runs();

}  // namespace headlab::fuzz
