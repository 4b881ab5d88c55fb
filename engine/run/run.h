// SPDX-License-Identifier: Apache-2.0
/// \file The loop: conditions -> blocks of replicates -> moments -> estimates.
#pragma once

#include <functional>

#include "engine/results/result.h"
#include "engine/run/resume.h"
#include "engine/run/session.h"
#include "engine/run/simulate.h"
#include "engine/scenario/scenario.h"

namespace headlab {

struct RunOptions {
  BegunRun* begun = nullptr;  ///< an earlier run, to go on with; it is used up
  /// Hears the results so far, all conditions of the study among them, every `checkpoint_seconds`
  /// at most, and so that it takes no more than a twentieth of the time.
  std::function<void(const RunResult&)> checkpoint = {};
  double checkpoint_seconds = 60;
};

/// Runs every condition of a study, those that share their draws together. Throws Refused for a
/// backend that is not there, a size that does not fit in memory or a run that cannot go on, before
/// anything is simulated.
RunResult run(const Study& study, const Session& session = {}, const RunOptions& options = {});

}  // namespace headlab
