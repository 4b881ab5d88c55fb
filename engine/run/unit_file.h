// SPDX-License-Identifier: Apache-2.0
/// \file Files of named results, each some bytes that its writer alone reads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace headlab {

/// What such a file says of itself.
struct UnitFile {
  std::string command;  ///< whose results they are: "validate --calibrate"
  std::string study;    ///< SHA-256 of all that they depend on
  std::uint64_t shard = 1;
  std::uint64_t shards = 1;
  bool complete = false;
  std::map<std::string, std::string> units = {};  ///< bytes by name
  /// Exit code of a command that has written its results and dropped its units.
  std::optional<int> exit_code = {};
};

/// Writes a file, whole or not at all; throws RunFailed.
void write_unit_file(const std::string& path, const UnitFile& file);

/// Reads a file of this program; throws InvalidInput with one line where it is of another one or
/// damaged. \param option  what the line begins with
UnitFile read_unit_file(const std::string& option, const std::string& path);

/// Throws InvalidInput where a file is of another command or study.
void require_unit_file(const std::string& option, const std::string& path, const UnitFile& file,
                       const std::string& command, const std::string& study);

}  // namespace headlab
