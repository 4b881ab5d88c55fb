// SPDX-License-Identifier: Apache-2.0
/// \file Exit codes of every command, decided in one place.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "validation/verdicts/calibration.h"
#include "validation/verdicts/validate.h"

namespace headlab::tools {

/// How a command ended. A signal that ends the program at once leaves 128 + its number instead.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  rejected = 2,  ///< nothing was begun
  differs = 3,   ///< from a verdict or a rate that was fixed beforehand
  no_figure_differs = 4,
  figures_differ = 5,
  unfinished = 6,  ///< or undecided where a verdict was fixed beforehand
};

/// A line of the table of exit codes.
struct ExitCodeMeaning {
  std::string code;  ///< "0", ..., "128 + n"
  std::string meaning;
};

/// The table of exit codes, for help and for docs/resuming.md.
const std::vector<ExitCodeMeaning>& exit_code_meanings();

/// done, or unfinished where a time limit or a signal ended the computation.
ExitCode exit_code_of(const Outcome& outcome);

/// differs where a verdict is another than the one fixed beforehand; unfinished where one is open
/// against a fixed one or time was up; done else.
ExitCode exit_code_of(const Validation& validation);

/// unfinished where not all runs were done; differs where a rate is not as required; done else.
ExitCode exit_code_of(const Calibration& calibration);

/// To be called where an exception is being handled: its message goes to standard error as
/// message_text() has it. rejected for InvalidInput, unfinished for Unfinished, failed for any
/// other.
ExitCode report_exception();

/// How an error is shown: on one line, or where that is too long for `width` columns wrapped, with
/// its advice, the part after the last " - ", on a line of its own.
std::string message_text(const std::string& error, std::size_t width);

/// From now on exit() is taken for that of a library, as HDF5 calls it where it gets no memory: the
/// program says so and ends with exit code 1.
void expect_no_exit();
/// The exit code, for main to return: exit() is the program's own again.
int own_exit(int code);

}  // namespace headlab::tools
