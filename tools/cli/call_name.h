// SPDX-License-Identifier: Apache-2.0
/// \file How the program is called, for advice that runs as printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headlab::tools {

/// Says what the program was called as, argv[0], and the names of its commands.
void set_call_name(const char* name, std::vector<std::string> commands);

/// A text for people with each command of its advice as the user would call it from the working
/// folder: "headlab run" where a shell finds the program by that name, else "build/headlab run".
std::string as_called(std::string_view text);

}  // namespace headlab::tools
