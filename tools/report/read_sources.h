// SPDX-License-Identifier: Apache-2.0
/// \file Sources of a report from what commands leave in a folder, and from a run in memory.
#pragma once

#include <string>
#include <vector>

#include "engine/results/result.h"
#include "engine/scenario/scenario.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// The documents in a folder, in the order of their names, or the one in a file of JSON. A
/// results.nc next to its summary.json adds command, scenario and precision. `notes` gets a line
/// for what could not be used. Throws InvalidInput where there is no document, or a damaged one.
std::vector<Source> read_sources(const std::string& path, std::vector<std::string>& notes);

/// The source of a run with its summary; the same as read back from the files of --out.
Source source_of_run(const Scenario& scenario, const RunResult& result, const std::string& summary);

/// The source of a document that has just been made.
Source source_of_document(const std::string& text);

}  // namespace headlab::tools
