// SPDX-License-Identifier: Apache-2.0
/// \file Results of the independent parts of a long command, kept in a folder: to be resumed, and
/// to be computed as shards.
///
/// A part, or what it is made of, is a unit: a name and bytes. The command computes what is not
/// kept, and the same command finds all of it later. Shards are processes that compute some parts
/// each into the same folder; what reads the folder has the bits of one process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/unit_file.h"

namespace headlab {

/// Which units are kept, and where.
struct UnitsPlan {
  std::string folder;
  std::string command;      ///< "validate --calibrate": of what they are
  std::string study;        ///< SHA-256 of all that they depend on
  std::uint64_t shard = 1;  ///< from 1
  std::uint64_t shards = 1;
  bool is_shard = false;  ///< also where there is one alone
  bool resumes = false;   ///< what the folder has is read
  double save_seconds = 60;
  /// Hears why what there is could not be written, while the command goes on.
  std::function<void(const std::string&)> problem = {};
};

/// "units_3_of_8.nc"
std::string units_file_name(std::uint64_t shard, std::uint64_t shards);

/// Names of all such files in a folder.
std::vector<std::string> units_files_in(const std::string& folder);

/// Any thread may call these functions.
class Units {
 public:
  /// Reads what is there; throws InvalidInput with one line for a file that is damaged or of
  /// another study.
  explicit Units(UnitsPlan plan);

  /// True where this process is a shard: it computes its parts alone, and nobody reads its result.
  bool is_shard() const { return plan_.is_shard; }
  /// True where this process computes part number `part`, from 0.
  bool has_part(std::uint64_t part) const { return part % plan_.shards == plan_.shard - 1; }

  /// The bytes of a unit, where they are there.
  std::optional<std::string> find(const std::string& name) const;
  /// Keeps a unit, in place of an earlier one of this name, and writes the file now and then.
  void keep(const std::string& name, std::string bytes);
  /// A name that is `name` with the number of such names before: of things that are made in one
  /// order.
  std::string next_name(const std::string& name);

  /// Writes the file, if anything was kept since, or with `anyway` if there is none; with
  /// `complete` it says that no part is missing. Throws RunFailed.
  void save(bool complete, bool anyway = false);

  /// The exit code of a command that has written its results from all units here.
  std::optional<int> exit_code() const { return file_.exit_code; }
  /// Writes that the command has, and keeps no unit any longer. Throws RunFailed.
  void finish(int exit_code);

  std::string path() const;
  /// Units that were there at the beginning.
  std::size_t found() const { return found_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Throws InvalidInput where another shard in the folder could not be joined with this one. One
  /// is read: a task does not wait for the files of thousands.
  void require_same_study() const;
  void write(bool complete);

  UnitsPlan plan_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> others_;  ///< of other files
  UnitFile file_;                              ///< of this process
  std::map<std::string, std::uint64_t> names_;
  std::size_t found_ = 0;
  bool changed_ = false;
  Clock::time_point next_save_;
};

}  // namespace headlab
