// SPDX-License-Identifier: Apache-2.0
/// \file The ways headlab stops, with the exit code each one becomes.
#pragma once

#include <stdexcept>

namespace headlab {

/// InvalidInput before work starts: usage, scenario, malformed input file, backend not there.
/// Exit 2. what() is one line without the leading "headlab: ".
class InvalidInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller asked to stop, or the time was up, before there was anything to keep.
class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("stopped before anything was computed") {}
};

/// Work had started and could not be finished: disk, memory, device. Exit 1.
class RunFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A time limit or a signal came before there was anything to keep. Exit 6.
class Unfinished : public RunFailed {
 public:
  using RunFailed::RunFailed;
};

}  // namespace headlab
