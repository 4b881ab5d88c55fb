// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/growth_study.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "engine/files/error.h"

namespace headlab {
namespace {

/// One n, all dimensions.
GrowthPoint simulated(const Condition& base, int budget, std::uint64_t replicates,
                      BandwidthRule rule, const Session& session) {
  std::vector<Condition> conditions = allocation_conditions(base, budget, rule);
  std::erase_if(conditions, [&](const Condition& one) { return budget % one.k != 0; });
  const std::string at = "growth, n " + std::to_string(base.n);
  if (rule == BandwidthRule::tuned) {
    tune(conditions, session, session.stage(at + ", pilot for the bandwidths"));
  }
  GrowthPoint point{.n = static_cast<double>(base.n), .dims = {}, .errors = {}};
  for (const Condition& one : conditions) point.dims.push_back(one.k);
  std::vector<std::size_t> all(conditions.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  BlockRuns runs(std::move(conditions), session);
  runs.advance(all, replicates / block_replicates, session.stage(at));
  for (const std::size_t member : all) point.errors.push_back(runs.errors(member));
  return point;
}

}  // namespace

GrowthStudy study_growth(const Condition& base, int budget, std::span<const std::uint64_t> sizes,
                         const Session& session, const AllocateOptions& options) {
  require_replicates(options);
  const Stopwatch watch;
  GrowthStudy study{.budget = budget,
                    .rule = options.rule,
                    .dims = {},
                    .replicates = std::min(options.replicates, growth_replicates) /
                                  block_replicates * block_replicates,
                    .points = {},
                    .growth = {}};
  if (sizes.size() > study.replicates / block_replicates / 2) {
    throw InvalidInput("--n: names " + std::to_string(sizes.size()) + " sizes, too many for " +
                       std::to_string(study.replicates) + " replicates (allowed: one for every " +
                       std::to_string(2 * block_replicates) + " of them)");
  }
  bool complete = true;
  try {
    for (const std::uint64_t n : sizes) {
      Condition one = base;
      one.n = n;
      study.points.push_back(simulated(one, budget, study.replicates, options.rule, session));
    }
    study.dims = study.points.at(0).dims;
    study.growth = fit_growth(study.points, base.seed);
  } catch (const TimeIsUp&) {
    complete = false;
    study.growth.verdict = "unfinished";
  }
  study.outcome = session.outcome(complete, watch);
  return study;
}

HeadGrowth head_growth(std::span<const GrowthStudy* const> studies, std::size_t size,
                       std::uint64_t seed) {
  std::vector<GrowthPoint> points;
  std::vector<int> budgets;
  for (const GrowthStudy* study : studies) {
    points.push_back(study->points.at(size));
    budgets.push_back(study->budget);
  }
  return fit_head_growth(points, budgets, seed);
}

}  // namespace headlab
