// SPDX-License-Identifier: Apache-2.0
/// \file What a run found, condition by condition.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/fields.h"
#include "engine/files/provenance.h"
#include "engine/moments/estimates.h"
#include "engine/moments/layer_estimates.h"
#include "engine/moments/moment_tree.h"
#include "engine/moments/precision.h"
#include "engine/results/difference.h"
#include "engine/results/share.h"
#include "engine/scenario/preparation.h"
#include "kernels/plan.h"

namespace headlab {

struct Condition;
struct References;

/// An adjustment is what controls subtract from a statistic; its mean is 0 where the means of the
/// controls are right.
struct ControlReport {
  std::uint64_t pilot = 0;       ///< replicates of the pilot
  double pilot_seconds = 0;      ///< that it took
  std::uint64_t statistics = 0;  ///< of all queries, heads and pairs of heads
  std::uint64_t adjusted = 0;    ///< of these, with an adjustment
  std::uint64_t tested = 0;      ///< of these, used: a run uses those whose mean it can test
  double largest_z = 0;          ///< largest |mean| of those tested, in standard errors
  bool refused = false;          ///< some mean is not 0: figures are those without controls
  bool wilder = false;           ///< some adjustment varies far more than in the pilot: likewise
  /// By name of the figure, squared standard error without controls over that with them; NaN where
  /// unknown.
  std::vector<std::pair<std::string, double>> gains = {};

  /// True where the figures are those with controls.
  bool used() const { return !refused && !wilder; }

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("pilot", pilot, "replicates of the pilot that fitted the controls");
    visit("pilot_seconds", pilot_seconds, "wall time of the pilot", {.unit = "s"});
    visit("statistics", statistics, "statistics of all queries, heads and pairs of heads");
    visit("adjusted", adjusted, "statistics from which controls can subtract something");
    visit("tested", tested, "adjustments that are used, whose means were tested");
    visit("largest_z", largest_z, "largest |mean| of an adjustment, in standard errors");
    visit("refused", refused, "a mean is not 0, so that figures are those without controls");
    visit("wilder", wilder,
          "an adjustment varies far more than in the pilot, so that figures are those without "
          "controls");
    visit("gain", by_name(gains), "variance without controls over variance with them",
          {.item = "gain"});
  }
};

/// One condition with its results.
struct ConditionResult {
  std::shared_ptr<const Condition> condition;  ///< the scenario's own: there may be 10^6 of them
  Preparation found;                           ///< before the simulation
  Plan plan;
  MomentTree tree;
  ConditionEstimates estimates;  ///< of a study of depth replicates and nodes alone
  /// Of the simulation loop, earlier runs with it. Where conditions were simulated together it is
  /// this one's share of their time, in proportion to replicate_work().
  double seconds = 0;
  double weights_per_second = 0;  ///< replicates x weights_of_replicate(plan) / seconds
  std::shared_ptr<const ConditionDifference> difference = {};  ///< where differences were asked for
  std::shared_ptr<const LayerEstimates> layers = {};           ///< of a study of depth, else null
  std::shared_ptr<const ControlReport> controls = {};          ///< where there are exact controls
};

/// How the figures of a condition use its controls: not at all where its figures are those without.
/// None where it has no controls.
inline std::optional<ControlUse> control_use(const ConditionResult& one) {
  const ControlUse* use = control_use(one.plan);
  if (use == nullptr) return {};
  ControlUse copy = *use;
  if (one.controls && !one.controls->used()) copy.never();
  return copy;
}

struct RunResult {
  /// In the order of the scenario, up to the last one that has replicates. A run that was stopped
  /// may have conditions before it without any, because others were simulated together.
  std::vector<ConditionResult> conditions;
  Machine machine;
  Outcome outcome;
  std::vector<std::string> notes;           ///< of the backend, one line each
  std::string difference_to = {};           ///< what is subtracted in differences, in words
  std::optional<Precision> precision = {};  ///< of a run until standard errors are small enough
  std::string missing_shards = {};          ///< "shards 2 and 5 of 8", left out of a merge
  std::optional<Share> share = {};          ///< of a shard, whose conditions[i] is that of part i
};

/// Gives every condition of a run its difference to its reference, from what both have now.
void set_differences(RunResult& result, const References& references);

}  // namespace headlab
