// SPDX-License-Identifier: Apache-2.0
/// \file The loop: conditions -> blocks of replicates -> moments -> estimates.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/moments/precision.h"
#include "engine/results/result.h"
#include "engine/run/checkpoint.h"
#include "engine/run/session.h"
#include "engine/run/simulate.h"
#include "engine/scenario/references.h"

namespace headlab {

struct Scenario;

class Ranks;
class Setup;

struct RunOptions {
  Checkpoint* begun = nullptr;  ///< an earlier run, to be resumed; it is used up
  /// Hears the results so far, all conditions of the scenario among them, every
  /// `checkpoint_seconds` at most, and so that it takes no more than a twentieth of the time.
  std::function<void(const RunResult&)> checkpoint = {};
  double checkpoint_seconds = 60;
  /// Progress counts the shares done of replicates under way where they take longer.
  double long_replicate_seconds = 10;
  /// Not empty: every condition gets the number of replicates at which these are met, and the one
  /// that the scenario gives is the most.
  std::vector<PrecisionTarget> until = {};
  /// Whose figures are subtracted from those of each condition.
  References references = {};
  /// Not null: condition i has the replicates of part i alone.
  const Share* share = nullptr;
  /// Not null: the processes that share the run. All ranks call run(); the results are those of
  /// rank 0, and the others return an empty one.
  Ranks* ranks = nullptr;
  /// Not null: where heads and weights that were found before are, and where new ones are kept.
  Setup* setup = nullptr;
  /// False: nothing is simulated, and the results are those of the machine that computed `begun`.
  bool simulates = true;
};

/// Runs every condition of a scenario, those that share their draws together. Throws InvalidInput
/// for a backend that is not there, a size that does not fit in memory or a run that cannot go on,
/// before anything is simulated. The results share the conditions of the scenario and keep it.
RunResult run(std::shared_ptr<const Scenario> scenario, const Session& session = {},
              const RunOptions& options = {});
RunResult run(Scenario scenario, const Session& session = {}, const RunOptions& options = {});

}  // namespace headlab
