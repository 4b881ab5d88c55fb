// SPDX-License-Identifier: Apache-2.0
/// \file Files that are there whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace headlab {

/// Writes `bytes` to PATH.tmp-<pid>, flushes it to the disk and renames it to `path`: a reader, or
/// a crash, finds the old file or the new one. Something at `path` that is no regular file (a pipe,
/// a device) is written to directly. On any failure the temporary is removed and CouldNotFinish
/// thrown with one line.
void write_atomically(const std::string& path, std::string_view bytes);

}  // namespace headlab
