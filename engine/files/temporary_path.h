// SPDX-License-Identifier: Apache-2.0
/// \file Files and folders under names of their own until they are whole, which nobody can guess
/// and which tell whose they are.
#pragma once

#include <string>
#include <vector>

namespace headlab {

/// PATH.tmp-HOST-SPACE-PROCESS-START-RANDOM: the machine, its space of process numbers, this
/// process, when it began, in clock ticks, and 16 random hexadecimal digits. What of the name of
/// `path` has no room is cut off.
std::string temporary_name(const std::string& path);

/// Removes what processes of this machine that have ended left in `folder` under temporary names,
/// once for each folder. Returns the paths of what other machines left there, as it seems: nothing
/// has been written to it for ten minutes.
std::vector<std::string> clear_temporaries(const std::string& folder);

}  // namespace headlab
