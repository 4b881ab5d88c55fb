// SPDX-License-Identifier: Apache-2.0
/// \file Sources of a report from what commands leave in a folder, and from a run in memory.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/results/result.h"
#include "tools/report/source.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// The files of JSON in a folder, in the order of their names. Throws InvalidInput.
std::vector<std::string> json_files(const std::string& folder);

/// A file that headlab itself names so: one that is damaged is not passed over.
bool is_own_name(const std::string& file);

/// Reads sources from folders and files, each file once.
class SourceReader {
 public:
  /// The documents in a folder, in the order of their names, or the one in a file of JSON. A
  /// results.nc next to its summary.json adds command, scenario and precision. Throws InvalidInput
  /// where there is no document, or a damaged one.
  std::vector<Source> read(const std::string& path);
  /// A line for everything that could not be used, or was given before.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// True where the file holds a document, which is added unless it was before.
  bool add(const std::string& file, std::vector<Source>& sources);

  std::set<std::string> taken_;  ///< files, by their canonical paths
  std::vector<std::string> notes_;
};

/// The source of a run with its summary; the same as read back from the files of --out.
Source source_of_run(const Scenario& scenario, const RunResult& result, const std::string& summary);

/// The source of a document that has just been made.
Source source_of_document(const std::string& text);

}  // namespace headlab::tools
