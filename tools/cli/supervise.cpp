// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/supervise.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/scenario/scenario.h"
#include "kernels/statistics/stopping.h"
#include "tools/cli/shipped_scenarios.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_stdin_bytes = std::size_t{64} << 20;  // as of a scenario file

/// Throws Stopped where `stop` comes before the end of the text, which may never come.
std::string read_standard_input(const std::function<bool()>& stop) {
  constexpr int patience_ms = 100;
  std::string text;
  std::string part(std::size_t{1} << 16, '\0');
  while (true) {
    if (stop()) throw Stopped();
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, patience_ms) == 0) continue;
    const ssize_t got = ::read(STDIN_FILENO, part.data(), part.size());
    if (got == 0) break;
    if (got < 0 && errno != EINTR) {
      throw InvalidInput(std::string(standard_input_name) + ": cannot be read");
    }
    if (got > 0) text.append(part, 0, static_cast<std::size_t>(got));
    if (text.size() > max_stdin_bytes) {
      throw InvalidInput(std::string(standard_input_name) + ": is larger than 64 MiB");
    }
  }
  if (text.empty()) {
    throw InvalidInput(std::string(standard_input_name) +
                       ": is empty - give a scenario on standard input");
  }
  return text;
}

}  // namespace

void LongRunNote::say(ProgressDisplay& display, const Progress& progress, double seconds) {
  // Before that the speed is little more than a guess.
  constexpr double measured = 1, hour = 3600;
  if (said_ || seconds < measured || std::isnan(progress.seconds_left)) return;
  said_ = true;
  const double left = progress.seconds_left;
  double allowed = std::numeric_limits<double>::infinity();
  if (arguments_.max_time) {
    const auto now = std::chrono::steady_clock::now();
    allowed = std::chrono::duration<double>(deadline_of(*arguments_.max_time) - now).count();
  }
  // A second before the end it is no news.
  if ((left <= hour && left <= allowed) || allowed < 1) return;
  std::string line = "takes about " + duration_text(left) + " more, by its speed so far";
  if (left > allowed) {
    line += "; --max-time " + one_line(arguments_.max_time->text) + " ends it in " +
            duration_text(std::max(0.0, allowed));
  }
  display.say(line);
}

Scenario read_supervised(const std::string& file, const CommonArguments& arguments,
                         const Session& session, ReadHooks hooks) {
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.quiet);
  const Texts sets = all_sets(arguments);
  const Stopwatch watch;
  double next = 0.1;
  hooks.stop = session.stop_hook();
  hooks.report = [&](double share) {
    if (watch.seconds() < next) return;
    next = watch.seconds() + 0.1;
    show_stage(display, {.stage = "reading conditions", .share = share}, watch.seconds());
  };
  const StopScope scope(hooks.stop);
  try {
    reject_undone(sets);
    if (file != "-") return read_scenario(file, sets, hooks);
    return parse_scenario(read_standard_input(hooks.stop), standard_input_name, sets, "", hooks);
  } catch (const WorkStopped&) {
    throw Stopped();
  } catch (const InvalidInput& error) {
    std::string line = as_typed(error.what(), arguments);
    std::error_code none;
    if (line.starts_with(file + ": ") && !std::filesystem::exists(file, none)) {
      line += file.find(" --") == std::string::npos ? advice_on_missing_scenario(file)
                                                    : " - write options outside of its quotes";
    }
    throw InvalidInput(line);
  }
}

void say_ending(const Outcome& outcome, const std::string& what) {
  if (outcome.complete) return;
  std::cerr << "headlab: " << (outcome.interrupted ? "interrupted: " : "--max-time reached: ")
            << what << "\n";
}

ExitCode ended(const Outcome& outcome, const std::string& what) {
  say_ending(outcome, what);
  return exit_code_of(outcome);
}

}  // namespace headlab::tools
