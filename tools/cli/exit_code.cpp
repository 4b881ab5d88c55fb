// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/exit_code.h"

#include <exception>
#include <iostream>
#include <new>
#include <string_view>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

ExitCode exit_code_of_verdict(const VerdictRow& row) {
  if (row.expected.empty() || row.expected == verdict_text(row.verdict)) return ExitCode::done;
  return row.verdict == Verdict::unresolved ? ExitCode::unfinished : ExitCode::differs;
}

bool exit_is_own = true;

void end_after_library() {
  if (exit_is_own) return;
  constexpr std::string_view line =
      "headlab: out of memory in a library, which ended the program - lower --threads or the size "
      "of the scenario\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  remove_scratch_paths();
  ::_exit(static_cast<int>(ExitCode::failed));
}

ExitCode reported(const char* error, ExitCode code) {
  std::cerr << message_text(error, error_width()) << "\n";
  return code;
}

}  // namespace

const std::vector<ExitCodeMeaning>& exit_code_meanings() {
  static const std::vector<ExitCodeMeaning> meanings = {
      {"0",
       "done; also a verdict `unresolved` where no other was fixed beforehand, an allocation too "
       "close to call, and a target of `--until` missed with the most replicates"},
      {"1",
       "failed: disk, memory, device, a figure that is not finite, standard output closed or full, "
       "a "
       "test of `doctor`"},
      {"2", "rejected before anything was begun"},
      {"3",
       "a verdict, or a rate of `validate --calibrate`, differs from what was fixed "
       "beforehand"},
      {"4", "`diff`: other bits, but no figure differs"},
      {"5", "`diff`: figures differ"},
      {"6",
       "not finished: `--max-time` or a signal; also `unresolved` where another verdict was "
       "fixed beforehand"},
      {"128 + n", "ended at once by signal n: a second one, or one while nothing is computed"},
  };
  return meanings;
}

std::string message_text(const std::string& error, std::size_t width) {
  const std::string text = "headlab: " + error;
  if (width == 0 || display_width(text) <= width) return text;
  const std::size_t advice = text.rfind(" - ");
  if (advice == std::string::npos) return wrapped(text, width, 2);
  // What may be a command stays in one piece, to be copied.
  const std::string line = "  " + text.substr(advice + 1);
  const bool whole = line.find_first_of("'\"") != std::string::npos;
  return wrapped(text.substr(0, advice), width, 2) + "\n" +
         (whole ? line : wrapped(line, width, 4));
}

ExitCode exit_code_of(const Outcome& outcome) {
  return outcome.complete ? ExitCode::done : ExitCode::unfinished;
}

ExitCode exit_code_of(const Validation& validation) {
  bool open = !validation.outcome.complete;
  for (const VerdictRow& row : validation.rows) {
    const ExitCode code = exit_code_of_verdict(row);
    // A verdict that was reached stays, whatever time left open.
    if (code == ExitCode::differs) return code;
    open = open || code == ExitCode::unfinished;
  }
  return open ? ExitCode::unfinished : ExitCode::done;
}

ExitCode exit_code_of(const Calibration& calibration) {
  const std::optional<bool> pass = calibration.pass();
  return !pass ? ExitCode::unfinished : *pass ? ExitCode::done : ExitCode::differs;
}

ExitCode report_exception() {
  try {
    throw;
  } catch (const InvalidInput& error) {
    return reported(error.what(), ExitCode::rejected);
  } catch (const Unfinished& error) {
    return reported(error.what(), ExitCode::unfinished);
  } catch (const std::bad_alloc&) {
    return reported(
        "out of memory - lower run.replicates, the number of queries or heads, or --threads",
        ExitCode::failed);
  } catch (const std::exception& error) {
    return reported(error.what(), ExitCode::failed);
  }
}

void expect_no_exit() {
  exit_is_own = std::atexit(end_after_library) != 0;
}

int own_exit(int code) {
  exit_is_own = true;
  return code;
}

}  // namespace headlab::tools
