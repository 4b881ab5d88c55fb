// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headlab::tools {

/// Reads the command line and runs the command it names. Returns the exit code of the program;
/// errors are one line on standard error.
int command_line(int argc, const char* const* argv);

/// Whether a signal asks the command to stop; it ends the others at once.
bool computes(int argc, const char* const* argv);

}  // namespace headlab::tools
