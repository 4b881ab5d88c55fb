// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/growth_study.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "engine/files/error.h"
#include "engine/scenario/condition.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

std::uint64_t replicates_of(const AllocateOptions& options) {
  return std::min(options.replicates, growth_replicates) / block_replicates * block_replicates;
}

}  // namespace

GrowthPoint simulate_growth_point(Condition base, int budget, std::uint64_t n, const Session& whole,
                                  const AllocateOptions& options) {
  base.n = n;
  std::vector<Condition> conditions = allocation_conditions(base, budget, options.rule);
  std::erase_if(conditions, [&](const Condition& one) { return budget % one.k != 0; });
  const std::string at = "growth, n " + std::to_string(n);
  Session session = whole;
  session.unit += ", " + at;
  if (options.rule == BandwidthRule::tuned) {
    tune(conditions, session, session.stage(at + ", pilot for the bandwidths"));
  }
  GrowthPoint point{.n = static_cast<double>(n), .dims = {}, .errors = {}};
  for (const Condition& one : conditions) point.dims.push_back(one.k);
  std::vector<std::size_t> all(conditions.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  BlockRuns runs(std::move(conditions), session);
  runs.advance(all, replicates_of(options) / block_replicates, session.stage(at));
  for (const std::size_t member : all) point.errors.push_back(runs.errors(member));
  return point;
}

void require_growth(std::span<const std::uint64_t> sizes, const AllocateOptions& options) {
  require_replicates(options);
  const std::uint64_t replicates = replicates_of(options);
  if (sizes.size() <= replicates / block_replicates / 2) return;
  throw InvalidInput("--n: names " + counted(sizes.size(), "size") + ", too many for " +
                     counted(replicates, "replicate") + " (allowed: one for every " +
                     std::to_string(2 * block_replicates) + " of them)");
}

GrowthStudy study_growth(const Condition& base, int budget, std::span<const std::uint64_t> sizes,
                         const Session& session, const AllocateOptions& options) {
  require_growth(sizes, options);
  const Stopwatch watch;
  GrowthStudy study{.budget = budget,
                    .rule = options.rule,
                    .dims = {},
                    .replicates = replicates_of(options),
                    .points = {},
                    .growth = {}};
  bool complete = true;
  try {
    for (const std::uint64_t n : sizes) {
      study.points.push_back(simulate_growth_point(base, budget, n, session, options));
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
