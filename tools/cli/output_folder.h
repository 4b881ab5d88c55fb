// SPDX-License-Identifier: Apache-2.0
/// \file Where results go, and finding out that they can before anything is simulated.
#pragma once

#include <chrono>
#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"

namespace headlab::tools {

/// The folder of --out: made and tried at once, so that a long run does not end at its door. What
/// was made is taken away again where nothing is kept in it.
class OutputFolder {
 public:
  /// Throws InvalidInput where `path` is not a folder that can be made and written to.
  explicit OutputFolder(const std::string& path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

  /// Keeps other runs out until the program ends, however it does. Throws InvalidInput where
  /// another run is at work.
  /// \param lock_name  the file that is locked: one for each group of files
  /// \param busy       what the message says of the other one
  /// \param patience   what another run has to say by, in the lock's file, that it was stopped; it
  ///                   may then take as long as it takes to write what it has. Throws Stopped where
  ///                   this command is stopped meanwhile
  void claim(const std::string& lock_name = whole_folder, const std::string& busy = another_writes,
             std::chrono::milliseconds patience = {});
  /// Keeps out whoever claims the whole folder, and lets in those that share it for the same work,
  /// of which each writes other files.
  void share(const std::string& work);

  /// Throws InvalidInput where one of these files cannot be written, or is in the folder and
  /// `options`, with which the command would be accepted, is not null.
  void require_place_for(const std::vector<std::string>& names, const char* options) const;

  static constexpr const char* whole_folder = ".headlab-lock";
  static constexpr const char* another_writes = "another command is writing there";

 private:
  /// A file that is locked until the object is gone, and removed with it.
  struct Lock {
    /// Sets errno where it is not had.
    bool take() const;

    std::string path;
    std::string work = {};  ///< that it is shared for, which the file says; empty: not shared
    int descriptor = -1;
    std::optional<ScratchPath> file = {};
  };

  void lock(Lock& lock, const std::string& busy, std::chrono::milliseconds patience);

  std::filesystem::path path_;
  std::filesystem::path first_made_;  ///< the outermost folder that was not there; may be empty
  std::list<Lock> locks_;
};

/// Of a command that resumes: a scheduler may begin a task again while the one that it has stopped
/// writes what it has.
constexpr std::chrono::milliseconds patience_of(bool resumes) {
  return std::chrono::seconds(resumes ? 3 : 0);
}

/// True where a command that is running has claimed `lock_name` in the folder.
bool is_claimed(const std::string& folder, const std::string& lock_name);

/// A path and the text that goes there.
using TextFile = std::pair<std::string, std::string>;

/// Writes files whole or not at all and says on standard error which, unless `quiet`. Throws
/// RunFailed.
void write_files(const std::vector<TextFile>& files, bool quiet);

/// The options that accept earlier results: of a command that resumes, and of others.
inline constexpr const char* resume_or_overwrite = "--resume or --overwrite";
inline constexpr const char* overwrite_only = "--overwrite";

/// Throws InvalidInput where there is something at `path`, naming it and `options`.
void require_nothing_at(const std::string& path, const std::string& options);

/// Throws InvalidInput where --overwrite has no --out to mean.
void require_out(bool overwrite, const std::optional<std::string>& out);

/// A file in `folder` that tells of a data set there: its manifest or one of its shards, by its
/// name in the folder; empty where there is none.
std::string data_set_in(const std::string& folder);

/// Throws InvalidInput where something is at `path`, of a file or a `folder` to be, that neither
/// can be replaced nor takes what is written, naming `option`.
void require_replaceable(const std::string& option, const std::string& path, bool folder = false);

/// The same, and where the folder of the file is not there or cannot be written to.
void require_writable(const std::string& option, const std::string& path);

/// Throws InvalidInput where `path` is one of the files that the command reads, naming `option`.
void require_no_input(const std::string& option, const std::string& path,
                      const std::vector<std::string>& inputs);

/// Throws InvalidInput where the file of --json cannot be written at `path`, or is one of `inputs`.
/// Throws InvalidInput where two options name one file.
/// \param paths  options with what they are given, "-" for standard output
void require_different_files(
    const std::vector<std::pair<std::string, std::optional<std::string>>>& paths);

void require_json_writable(const std::string& path, const std::vector<std::string>& inputs);

}  // namespace headlab::tools
