// SPDX-License-Identifier: Apache-2.0
/// \file How a long command runs and ends: signals, time limit, progress, exit code.
#pragma once

#include <iostream>
#include <string>

#include "engine/run/session.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signal.h"

namespace headlab::tools {

/// Returns the result of work(display), a struct with an Outcome. Meanwhile signals set the flag of
/// `session`, whose deadline counts from here, and its progress is on standard error, shown by
/// show(display, progress, seconds). The display is cleared before an error of the work gets out.
template <class Show, class Work>
auto supervise(Session& session, const RunArguments& arguments, const Show& show,
               const Work& work) {
  session.stop = stop_on_signals();
  if (arguments.max_time) session.deadline = deadline_of(*arguments.max_time);
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.quiet);
  const Stopwatch watch;
  session.report = [&](const Progress& progress) { show(display, progress, watch.seconds()); };
  auto result = work(display);
  session.report = {};
  end_on_signals();
  const Outcome& outcome = result.outcome;
  display.finish(outcome.complete ? "done in " + duration_text(outcome.seconds) : "");
  return result;
}

/// Says on standard error why a computation ended early, and `what` that means.
inline void say_ending(const Outcome& outcome, const std::string& what) {
  if (outcome.complete) return;
  std::cerr << "headlab: " << (outcome.interrupted ? "interrupted: " : "--max-time reached: ")
            << what << "\n";
}

/// The same; returns the exit code.
inline ExitCode ended(const Outcome& outcome, const std::string& what) {
  say_ending(outcome, what);
  return exit_code_of(outcome);
}

}  // namespace headlab::tools
