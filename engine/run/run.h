// SPDX-License-Identifier: Apache-2.0
/// \file The loop: conditions -> blocks of replicates -> moments -> estimates.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/results/result.h"
#include "engine/run/resume.h"
#include "engine/run/simulate.h"
#include "engine/scenario/scenario.h"
#include "kernels/backend.h"

namespace headlab {

/// What a caller hears while a run goes on, about every tenth of a second.
struct Progress {
  std::size_t condition = 0;  ///< of `conditions`, from 0; the first of those simulated together
  std::size_t last_condition = 0;  ///< the last of them
  std::size_t together = 1;        ///< how many they are
  std::size_t conditions = 1;
  std::uint64_t done = 0;  ///< of each of them
  std::uint64_t total = 0;
  const char* what = "replicates";  ///< that are counted, or "steps of learning"
  double seconds = 0;               ///< since the run began or went on
  double seconds_left = 0;          ///< of the whole run, NaN while unknown
  Figure mse;                       ///< of `condition` so far
};

struct RunOptions {
  std::string backend = "auto";
  int threads = 0;                          ///< 0: all of this machine
  std::optional<double> max_seconds = {};   ///< stop after the block under way; not an error
  const std::atomic<bool>* stop = nullptr;  ///< set from a signal handler: stop after the block
  BegunRun* begun = nullptr;                ///< an earlier run, to go on with; it is used up
  std::function<void(const Progress&)> progress = {};
  /// Hears the results so far, all conditions of the study among them, every `checkpoint_seconds`
  /// at most, and so that it takes no more than a twentieth of the time.
  std::function<void(const RunResult&)> checkpoint = {};
  double checkpoint_seconds = 60;
};

/// Runs every condition of a study, those that share their draws together. Throws Refused for a
/// backend that is not there, a size that does not fit in memory or a run that cannot go on, before
/// anything is simulated.
RunResult run(const Study& study, const RunOptions& options = {});

}  // namespace headlab
