// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/stop_signal.h"

#include <cstdint>
#include <iostream>
#include <signal.h>
#include <time.h>

#include "engine/files/error.h"

namespace headlab::tools {
namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

std::atomic<std::int64_t> asked_at = 0;  ///< seconds of the monotonic clock
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// The first signal asks to stop. One that comes two seconds later ends the program at once; sooner
/// it is the same request again: timeout(1) signals the program and then its whole group.
extern "C" void ask_to_stop(int number) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!stop_asked) {
    asked_at = now.tv_sec;
    stop_asked = true;
  } else if (now.tv_sec - asked_at > 1) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

void (*handler_of(int number))(int) {
  struct sigaction action = {};
  sigaction(number, nullptr, &action);
  return action.sa_handler;
}

}  // namespace

const std::atomic<bool>* stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = ask_to_stop;
  sigemptyset(&action.sa_mask);
  for (const int number : stop_signals) {
    // What is ignored stays so: hangups under nohup, interrupts of a script's background jobs.
    if (handler_of(number) != SIG_IGN) sigaction(number, &action, nullptr);
  }
  // A file size limit is then an error of write(), which says so, and not a killed program.
  signal(SIGXFSZ, SIG_IGN);
  return &stop_asked;
}

void end_on_signals() {
  for (const int number : stop_signals) {
    if (handler_of(number) == ask_to_stop) signal(number, SIG_DFL);
  }
}

void finish_standard_output() {
  if (!std::cout.flush()) throw RunFailed("standard output: cannot be written");
}

}  // namespace headlab::tools
