// SPDX-License-Identifier: Apache-2.0
/// \file How a long command runs and ends: signals, time limit, progress, exit code.
#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "engine/run/session.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/scenario_argument.h"
#include "tools/cli/stop_signal.h"

namespace headlab::tools {

/// Returns the result of work(display), a struct with an Outcome. Meanwhile signals set the flag of
/// `session`, and its progress is on standard error, shown by
/// show(display, progress, seconds). The display is cleared before an error of the work gets out.
template <class Show, class Work>
auto supervise(Session& session, const CommonArguments& arguments, const Show& show,
               const Work& work) {
  limit(session, arguments);
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.quiet);
  const Stopwatch watch;
  // Figures on the way are computed for the display alone.
  if (!arguments.quiet) {
    session.report = [&](const Progress& progress) { show(display, progress, watch.seconds()); };
    session.report_due = [&] { return display.is_due(watch.seconds()); };
  }
  auto result = work(display);
  session.report = {};
  session.report_due = {};
  end_on_signals();
  const Outcome& outcome = result.outcome;
  display.finish(outcome.complete ? "done in " + duration_text(outcome.seconds) : "");
  return result;
}

/// Reads a scenario while signals and --max-time may stop it, with progress on standard error;
/// throws Stopped, and InvalidInput as read_scenario().
inline Scenario read_supervised(const std::string& file, const std::vector<std::string>& sets,
                                const Session& session, bool quiet, ReadHooks hooks = {}) {
  ProgressDisplay display = ProgressDisplay::on_standard_error(quiet);
  const Stopwatch watch;
  double next = 0.1;
  hooks.stop = session.stop_hook();
  hooks.report = [&](double share) {
    if (watch.seconds() < next) return;
    next = watch.seconds() + 0.1;
    show_stage(display, {.stage = "reading conditions", .share = share}, watch.seconds());
  };
  return read_scenario_argument(file, sets, hooks);
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
