// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/stop_signal.h"

#include <optional>
#include <pthread.h>
#include <signal.h>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "engine/files/atomic_file.h"

namespace headlab::tools {
namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point started = Clock::now();

std::atomic<bool> stop_asked = false;
std::atomic<bool> can_stop = false;  ///< the command looks at the flag

/// The last three are how batch systems announce the end of a job.
constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
constexpr std::chrono::seconds one_request{1};

void say(std::string_view line) {
  // Past std::cerr, which another thread may be writing to.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] void quit(int number) {
  remove_scratch_paths();
  ::_exit(128 + number);
}

void watch(sigset_t signals) {
  std::optional<Clock::time_point> first;
  while (true) {
    int number = 0;
    if (sigwait(&signals, &number) != 0) continue;
    const Clock::time_point now = Clock::now();
    if (first) {
      if (now - *first >= one_request) quit(number);
      continue;
    }
    const bool stops = can_stop;
    if (::isatty(STDERR_FILENO) == 1) say("\r\x1b[K");  // in the place of a progress bar
    if (!stops) {
      say("headlab: interrupted\n");
      quit(number);
    }
    first = now;
    stop_asked = true;
    say("headlab: stopping; again to quit at once\n");
  }
}

}  // namespace

void watch_signals(bool stops) {
  can_stop = stops;
  // A file size limit is then an error of write(), which says so, and not a killed program.
  signal(SIGXFSZ, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : stop_signals) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    // What is ignored stays so: hangups under nohup, interrupts of a script's background jobs.
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  try {
    std::thread(watch, signals).detach();
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);  // no thread: signals end the program
  }
}

const std::atomic<bool>* stop_on_signals() {
  can_stop = true;
  return &stop_asked;
}

bool stop_requested() {
  return stop_asked;
}

void end_on_signals() {
  can_stop = false;
}

Clock::time_point program_start() {
  return started;
}

}  // namespace headlab::tools
