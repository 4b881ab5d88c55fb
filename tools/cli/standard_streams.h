// SPDX-License-Identifier: Apache-2.0
/// \file Standard input, output and error, which may be closed or full.
#pragma once

#include <string_view>

namespace headlab::tools {

/// Puts something in the place of each standard stream that is closed, so that no file opened later
/// gets its number, and what is printed. Writing to it fails as writing to a closed stream does.
void hold_standard_streams();

/// Writes to standard output and flushes it; throws RunFailed where that is closed, or a full disk.
void print(std::string_view text);

/// Flushes standard output, which may be closed or a full disk; throws RunFailed.
void finish_standard_output();

}  // namespace headlab::tools
