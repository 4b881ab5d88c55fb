// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headlab::tools {

/// Reads the command line and runs the command it names. Returns the exit code of the program;
/// errors are one line on standard error.
int command_line(int argc, const char* const* argv);

/// What a command line finishes before it ends when a signal asks it to, as "this training set";
/// null for those that a signal ends at once.
const char* unit_of_work(int argc, const char* const* argv);

}  // namespace headlab::tools
