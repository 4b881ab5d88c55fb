// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <cmath>
#include <string_view>
#include <unistd.h>

#include "engine/files/words.h"
#include "kernels/host.h"
#include "tools/cli/characters.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

std::string counts(const Progress& progress) {
  return std::to_string(progress.done) + " of " + std::to_string(progress.total) + " " +
         progress.what;
}

std::string boxed_bar(const Progress& progress) {
  constexpr std::size_t width = 20;
  return "▕" + left(bar(progress.share, width), width) + "▏";
}

bool has_estimate(const Progress& progress) {
  return !std::isnan(progress.estimate.value);
}

/// Which conditions, for a sweep.
std::string place(const Progress& progress) {
  return conditions_text(progress.condition, progress.last_condition, progress.together) + " of " +
         std::to_string(progress.conditions);
}

std::string estimate_text(const Progress& progress) {
  const std::string text = std::string(progress.figure) + " " + figure_text(progress.estimate);
  if (progress.together == 1) return text;
  return text + " in " + conditions_text(progress.condition, progress.condition, 1);
}

}  // namespace

namespace {

/// Shows a bar with `words`, and the stage where it fits; `log` in a log.
void show_line(ProgressDisplay& display, const Progress& progress, double seconds,
               const std::string& words, const std::string& log) {
  display.show(
      seconds,
      [&](std::size_t width) {
        std::string line = boxed_bar(progress) + words;
        if (display_width(line) + 2 + display_width(progress.stage) <= width) {
          line += "  " + progress.stage;
        }
        return display_width(line) <= width ? line : "";
      },
      [&] { return log; });
}

}  // namespace

std::string percent(const Progress& progress) {
  return std::to_string(static_cast<int>(std::floor(100 * progress.share))) + " %";
}

std::string conditions_text(std::size_t first, std::size_t last, std::size_t count) {
  if (count == 1) return numbered_condition(first);
  if (last - first + 1 != count) return std::to_string(count) + " conditions";
  return "conditions #" + std::to_string(first) + " to #" + std::to_string(last);
}

std::string progress_bar_line(const Progress& progress, std::size_t width) {
  std::string line;
  if (progress.conditions > 1) line = place(progress) + "  ";
  line += boxed_bar(progress) + right(percent(progress), 5);
  auto add = [&](const std::string& part) {
    if (display_width(line) + 2 + display_width(part) <= width) line += "  " + part;
  };
  if (!std::isnan(progress.seconds_left)) add(duration_text(progress.seconds_left) + " left");
  if (has_estimate(progress)) add(estimate_text(progress));
  add(counts(progress));
  if (!progress.until.empty()) add(progress.until);
  if (display_width(line) > width) line = right(percent(progress), 5);
  return display_width(line) > width ? "" : line;
}

std::string progress_log_line(const Progress& progress) {
  std::string line;
  if (progress.conditions > 1) line = place(progress) + ", ";
  line += percent(progress) + ", " + counts(progress);
  if (!progress.until.empty()) line += ", " + progress.until;
  if (has_estimate(progress)) line += ", " + estimate_text(progress);
  if (!std::isnan(progress.seconds_left)) {
    line += ", " + duration_text(progress.seconds_left) + " left";
  }
  return line;
}

ProgressDisplay::ProgressDisplay(Kind kind, std::ostream& out, std::size_t (*width)())
    : kind_(kind), out_(&out), width_(width) {}

ProgressDisplay ProgressDisplay::on_standard_error(bool quiet) {
  const char* const terminal = environment_variable("TERM");
  const bool moves_cursor =
      ::isatty(STDERR_FILENO) == 1 && terminal && std::string_view(terminal) != "dumb";
  const Kind kind = quiet ? Kind::none : moves_cursor ? Kind::bar : Kind::log;
  return {kind, control_stream(), &error_width};
}

bool ProgressDisplay::is_due(double seconds) const {
  return kind_ == Kind::bar || (kind_ == Kind::log && seconds >= next_log_);
}

void ProgressDisplay::show(double seconds, const std::function<std::string(std::size_t)>& bar,
                           const std::function<std::string()>& log) {
  if (kind_ == Kind::bar) {
    // One column stays free: a full line would wrap on some terminals.
    const std::size_t width = width_();
    *out_ << "\r" << bar(width > 0 ? width - 1 : 0) << "\x1b[K" << std::flush;
    shown_ = true;
  } else if (is_due(seconds)) {
    *out_ << "headlab: " << log() << std::endl;
    shown_ = true;
    next_log_ = seconds + log_interval;
  }
}

void ProgressDisplay::say(const std::string& line) {
  if (kind_ == Kind::none) return;
  if (kind_ == Kind::bar && shown_) *out_ << "\r\x1b[K";
  *out_ << "headlab: " << line << std::endl;
}

void ProgressDisplay::finish(const std::string& last) {
  if (!shown_) return;
  if (kind_ == Kind::bar) *out_ << "\r\x1b[K";
  if (!last.empty()) *out_ << "headlab: " << last << std::endl;
  *out_ << std::flush;
  shown_ = false;
}

void show_run(ProgressDisplay& display, const Progress& progress, double seconds) {
  display.show(
      seconds, [&](std::size_t width) { return progress_bar_line(progress, width); },
      [&] { return progress_log_line(progress); });
}

void show_count(ProgressDisplay& display, const Progress& progress, double seconds) {
  show_line(display, progress, seconds, " " + counts(progress),
            counts(progress) + (progress.stage.empty() ? "" : ", " + progress.stage));
}

void show_stage(ProgressDisplay& display, const Progress& progress, double seconds) {
  show_line(display, progress, seconds, right(percent(progress), 6),
            progress.stage + ", " + percent(progress));
}

}  // namespace headlab::tools
