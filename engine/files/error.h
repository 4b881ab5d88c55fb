// SPDX-License-Identifier: Apache-2.0
/// \file The two ways headlab stops, with the exit code each one becomes.
#pragma once

#include <stdexcept>

namespace headlab {

/// Refused before work starts: usage, scenario, malformed input file, backend not there. Exit 2.
/// what() is one line without the leading "headlab: ".
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Work had started and could not be finished: disk, memory, device. Exit 1.
class CouldNotFinish : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace headlab
