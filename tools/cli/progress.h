// SPDX-License-Identifier: Apache-2.0
/// \file How far a run is: a bar on a terminal, a line every 10 s in a log.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>

#include "engine/run/session.h"

namespace headlab::tools {

/// "condition #3", "conditions #3 to #6", or "4 conditions" where those are not in a row. `first`
/// and `last` count from 0.
std::string conditions_text(std::size_t first, std::size_t last, std::size_t count);

/// "37 %": rounded down, so that 100 % means all.
std::string percent(const Progress& progress);

/// One line of at most `width` columns; parts are left out from the right where it is narrow.
std::string progress_bar_line(const Progress& progress, std::size_t width);

/// The same in words, for a log.
std::string progress_log_line(const Progress& progress);

/// Shows the progress of one command on a stream.
class ProgressDisplay {
 public:
  enum class Kind { none, log, bar };
  /// `width` gives the columns of the terminal at any moment; bars alone ask for it.
  ProgressDisplay(Kind kind, std::ostream& out, std::size_t (*width)());

  /// As fits standard error: a bar on a terminal, a log elsewhere, nothing with `quiet`.
  static ProgressDisplay on_standard_error(bool quiet);

  ~ProgressDisplay() { finish(""); }
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// True where show() at `seconds` since the command began shows something.
  bool is_due(double seconds) const;
  /// Shows `bar` of a number of columns, or `log`, at `seconds` since the command began.
  void show(double seconds, const std::function<std::string(std::size_t)>& bar,
            const std::function<std::string()>& log);
  /// Says a line above the bar; nothing with `quiet`.
  void say(const std::string& line);
  /// Clears the bar and says `last` in its place; a log that has said nothing stays silent.
  void finish(const std::string& last);

 private:
  static constexpr double log_interval = 10;  ///< seconds

  Kind kind_;
  std::ostream* out_;
  std::size_t (*width_)();
  bool shown_ = false;
  double next_log_ = log_interval;
};

/// Shows the progress of a run.
void show_run(ProgressDisplay& display, const Progress& progress, double seconds);
/// The same of a list of studies or runs: how many of them are done, then the stage.
void show_count(ProgressDisplay& display, const Progress& progress, double seconds);
/// The same of stages one after the other: the share done of the one under way.
void show_stage(ProgressDisplay& display, const Progress& progress, double seconds);

}  // namespace headlab::tools
