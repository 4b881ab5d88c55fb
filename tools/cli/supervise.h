// SPDX-License-Identifier: Apache-2.0
/// \file How a long command runs and ends: signals, time limit, progress, exit code.
#pragma once

#include <string>
#include <vector>

#include "engine/run/session.h"
#include "engine/scenario/sweep.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signal.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// Says once on `display` that a command takes more than an hour, or than --max-time leaves it, by
/// the time that it has left.
class LongRunNote {
 public:
  explicit LongRunNote(const CommonArguments& arguments) : arguments_(arguments) {}
  /// \param seconds of the command so far
  void say(ProgressDisplay& display, const Progress& progress, double seconds);

 private:
  const CommonArguments& arguments_;
  bool said_ = false;
};

/// Returns the result of work(display), a struct with an Outcome. Meanwhile signals set the flag of
/// `session`, and its progress is on standard error, shown by
/// show(display, progress, seconds). The display is cleared before an error of the work gets out.
template <class Show, class Work>
auto supervise(Session& session, const CommonArguments& arguments, const Show& show,
               const Work& work) {
  const KeepsWork kept;
  limit(session, arguments);
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.quiet);
  const Stopwatch watch;
  // Figures on the way are computed for the display alone.
  if (!arguments.quiet) {
    session.report = [&, note = LongRunNote(arguments)](const Progress& progress) mutable {
      note.say(display, progress, watch.seconds());
      show(display, progress, watch.seconds());
    };
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

/// The scenario that a command names: a file, or standard input for "-". Messages call the latter
/// <stdin>, and relative paths in it begin at the working folder. Signals and --max-time may stop
/// the reading, whose progress is on standard error. Throws Stopped, and InvalidInput.
Scenario read_supervised(const std::string& file, const CommonArguments& arguments,
                         const Session& session, ReadHooks hooks = {});

/// Says on standard error why a computation ended early, and `what` that means.
void say_ending(const Outcome& outcome, const std::string& what);

/// The same; returns the exit code.
ExitCode ended(const Outcome& outcome, const std::string& what);

}  // namespace headlab::tools
