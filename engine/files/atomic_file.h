// SPDX-License-Identifier: Apache-2.0
/// \file Files that are there whole or not at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/files/error.h"
#include "engine/files/text_sink.h"

namespace headlab {

/// The name under which a file is written before it is renamed; `process` is a number.
std::string temporary_name(const std::string& path, const std::string& process);

/// Writes `bytes` to PATH.tmp-<pid>, flushes it to the disk and renames it to `path`: a reader, or
/// a crash, finds the old file or the new one. Something at `path` that is not a regular file (a
/// pipe, a device) is written to directly. On any failure the temporary is removed and RunFailed
/// thrown with one line.
void write_atomically(const std::string& path, std::string_view bytes);

/// The same for bytes that `produce` hands over part by part; what it throws removes the temporary
/// too.
void write_atomically(const std::string& path, const std::function<void(const TextSink&)>& produce);

/// What is thrown where writing to `path` failed with the number `error` of errno: one line, with
/// advice where there is some.
RunFailed cannot_be_written(const std::string& path, int error);

/// Flushes an open file to the disk; throws RunFailed, naming `path`.
void flush_to_disk(int descriptor, const std::string& path);

/// Flushes the folder that `path` is in, so that a rename to `path` is on the disk. Best effort.
void flush_folder_of(const std::string& path);

}  // namespace headlab
