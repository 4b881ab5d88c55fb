// SPDX-License-Identifier: Apache-2.0
/// \file Files that are there whole or not at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/files/error.h"
#include "engine/files/text_sink.h"

namespace headlab {

/// Writes `bytes` under a temporary name (engine/files/temporary_path.h), flushes them to the disk
/// and renames the file to `path`: a reader, or a crash, finds the old file or the new one. It has
/// the permissions of the file that it replaces. Something at `path` that is not a regular file (a
/// pipe, a device) is written to directly. On any failure the temporary is removed and RunFailed
/// thrown with one line; what killed processes left in the folder is removed too.
void write_atomically(const std::string& path, std::string_view bytes);

/// The same for bytes that `produce` hands over part by part; what it throws removes the temporary
/// too.
void write_atomically(const std::string& path, const std::function<void(const TextSink&)>& produce);

/// Makes a folder and those it is in. Throws RunFailed where it cannot be made, or where a link is
/// at its place, through which nothing is written.
void make_folder(const std::string& path);

/// Moves a file or a folder with files to `target`, in whose place it is whole or, for a folder
/// that is there, file by file. Throws RunFailed.
void move_made(const std::string& path, const std::string& target);

/// What is thrown where writing to `path` failed with the number `error` of errno: one line, with
/// advice where there is some.
RunFailed cannot_be_written(const std::string& path, int error);

/// Flushes an open file to the disk; throws RunFailed, naming `path`.
void flush_to_disk(int descriptor, const std::string& path);

/// The folder that `path` is in.
std::string folder_of(const std::string& path);

/// Flushes the folder that `path` is in, so that a rename to `path` is on the disk. Best effort.
void flush_folder_of(const std::string& path);

/// Names a file or folder to remove where the process quits before this object is gone. It neither
/// makes nor removes it itself.
class ScratchPath {
 public:
  explicit ScratchPath(std::string path);
  ~ScratchPath();
  ScratchPath(const ScratchPath&) = delete;
  ScratchPath& operator=(const ScratchPath&) = delete;

 private:
  std::string path_;
};

/// Removes what every ScratchPath names and keeps further ones from being made: threads that try
/// wait for ever. To be followed by _exit().
void remove_scratch_paths();

}  // namespace headlab
