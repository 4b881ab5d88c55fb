// SPDX-License-Identifier: Apache-2.0
/// \file How a long command is stopped, and how it ends.
#pragma once

#include <atomic>
#include <chrono>

namespace headlab::tools {

/// Has a thread of its own wait for SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU from now
/// on; to be called before any other thread is there. Signals that are ignored when the program
/// begins stay ignored.
///
/// While the command looks at the flag of stop_on_signals(), from the beginning where it `stops`,
/// the first signal says so on standard error and sets the flag. One that comes at least a
/// second later, or while nothing looks at the flag, makes the program quit: temporary files are
/// removed, and the exit code is 128 + n for signal n. Sooner it is the same request again:
/// timeout(1) signals the program and then its whole group.
///
/// A command that has nothing to keep and does not end by itself soon, for it is deep in a library,
/// is ended by that thread as it would have ended: "kept nothing".
void watch_signals(bool stops);

/// From now on a signal sets the flag returned and leaves it to the command to stop at a good
/// place.
const std::atomic<bool>* stop_on_signals();

/// Whether a signal set the flag.
bool stop_requested();

/// The same stop at this time, without a signal.
void stop_at(std::chrono::steady_clock::time_point deadline);

/// Once nothing looks at the flag any more: a signal makes the program quit again.
void end_on_signals();

/// Writes into this open file, once, that a stop was asked for: now, or when it is. Until the file
/// is closed, which forget_stop_file() comes before.
void write_stop_to(int file);
void forget_stop_file(int file);

/// While one lives, the command has work to keep, and ends by itself however long that takes.
class KeepsWork {
 public:
  KeepsWork();
  ~KeepsWork();
  KeepsWork(const KeepsWork&) = delete;
  KeepsWork& operator=(const KeepsWork&) = delete;
};

/// When the program began.
std::chrono::steady_clock::time_point program_start();

}  // namespace headlab::tools
