// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/stop_signal.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <signal.h>
#include <string_view>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"
#include "tools/cli/exit_code.h"

namespace headlab::tools {
namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point started = Clock::now();

std::atomic<bool> stop_asked = false;
std::atomic<bool> watched = false;

/// What the command does about a stop. Whoever ends the program keeps the mutex.
struct Command {
  std::mutex mutex;
  bool can_stop = false;  ///< it looks at the flag
  int keeps = 0;          ///< number of KeepsWork
  std::vector<int> stop_files = {};
};

/// Never destroyed: a signal may come while the program ends.
Command& command() {
  static auto* const the = new Command;
  return *the;
}

/// The last three are how batch systems announce the end of a job.
constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
constexpr std::chrono::seconds one_request{1};
/// How long a command may take to end by itself, and how soon it is asked again.
constexpr std::chrono::milliseconds patience{1600}, again{100};

void say(std::string_view line) {
  // Past std::cerr, which another thread may be writing to.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] void quit(int number) {
  remove_scratch_paths();
  ::_exit(128 + number);
}

void clear_progress() {
  if (::isatty(STDERR_FILENO) == 1) say("\r\x1b[K");
}

/// To be called with the mutex.
void write_stop_files() {
  constexpr std::string_view stopping = "stopping\n";
  for (const int file : std::exchange(command().stop_files, {})) {
    [[maybe_unused]] const ssize_t written = ::write(file, stopping.data(), stopping.size());
  }
}

/// Has SIGALRM come in this time, and no more at another one.
void alarm_in(Clock::duration time) {
  const auto us = std::max<std::chrono::microseconds::rep>(
      1, std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  constexpr std::chrono::microseconds::rep second = 1000000;
  const itimerval timer = {.it_interval = {}, .it_value = {us / second, us % second}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Ends the program where a stop finds it deep in a library, with nothing to keep.
void end_late() {
  const std::lock_guard lock(command().mutex);
  if (!command().can_stop) return;
  write_stop_files();
  if (command().keeps > 0) return alarm_in(again);
  clear_progress();
  say(stop_asked ? "headlab: interrupted: kept nothing\n"
                 : "headlab: --max-time reached: kept nothing\n");
  remove_scratch_paths();
  ::_exit(static_cast<int>(ExitCode::unfinished));
}

void watch(sigset_t signals) {
  std::optional<Clock::time_point> first;
  while (true) {
    int number = 0;
    if (sigwait(&signals, &number) != 0) continue;
    if (number == SIGALRM) {
      end_late();
      continue;
    }
    const Clock::time_point now = Clock::now();
    if (first) {
      if (now - *first >= one_request) quit(number);
      continue;
    }
    const bool stops = [] {
      const std::lock_guard lock(command().mutex);
      return command().can_stop;
    }();
    clear_progress();
    if (!stops) {
      say("headlab: interrupted\n");
      quit(number);
    }
    first = now;
    say("headlab: stopping; again to quit at once\n");
    const std::lock_guard lock(command().mutex);
    stop_asked = true;
    write_stop_files();
    alarm_in(patience);
  }
}

}  // namespace

void watch_signals(bool stops) {
  command().can_stop = stops;
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
  signal(SIGALRM, SIG_DFL);
  sigaddset(&signals, SIGALRM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  try {
    std::thread(watch, signals).detach();
    watched = true;
  } catch (const std::exception&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);  // no thread: signals end the program
  }
}

const std::atomic<bool>* stop_on_signals() {
  const std::lock_guard lock(command().mutex);
  command().can_stop = true;
  return &stop_asked;
}

void stop_at(Clock::time_point deadline) {
  const std::lock_guard lock(command().mutex);
  if (watched && !stop_asked) alarm_in(deadline - Clock::now() + patience);
}

bool stop_requested() {
  return stop_asked;
}

void end_on_signals() {
  const std::lock_guard lock(command().mutex);
  command().can_stop = false;
}

void write_stop_to(int file) {
  const std::lock_guard lock(command().mutex);
  command().stop_files.push_back(file);
  if (stop_asked) write_stop_files();
}

void forget_stop_file(int file) {
  const std::lock_guard lock(command().mutex);
  std::erase(command().stop_files, file);
}

KeepsWork::KeepsWork() {
  const std::lock_guard lock(command().mutex);
  ++command().keeps;
}

KeepsWork::~KeepsWork() {
  const std::lock_guard lock(command().mutex);
  --command().keeps;
}

Clock::time_point program_start() {
  return started;
}

}  // namespace headlab::tools
