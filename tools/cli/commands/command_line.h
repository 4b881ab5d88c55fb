// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace headlab::tools {

/// Reads the command line and runs the command it names. Returns the exit code of the program;
/// errors are one line on standard error.
int command_line(int argc, const char* const* argv);

/// True for the commands that end at a good place when a signal asks them to.
bool stops_when_asked(const std::string& command);

}  // namespace headlab::tools
