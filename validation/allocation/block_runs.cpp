// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/block_runs.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "engine/moments/estimates.h"
#include "engine/run/memory.h"
#include "engine/run/simulate.h"
#include "kernels/parallel_for.h"
#include "kernels/philox.h"

namespace headlab {
namespace {

/// The seed of a block. Heads take the streams of `haar` from the first on, and there are at most
/// 1024: the upper half is free.
std::uint64_t block_seed(std::uint64_t seed, std::uint64_t block) {
  constexpr std::uint64_t upper_half = std::uint64_t{1} << 39;
  const Words words = philox(seed, subsequence(Purpose::haar, upper_half + block), 0);
  return (std::uint64_t{words.w[1]} << 32) | words.w[0];
}

}  // namespace

BlockRuns::BlockRuns(std::vector<Scenario> scenarios, Session session, std::uint64_t first_block)
    : session_(std::move(session)), first_block_(first_block), errors_(scenarios.size()) {
  const int workers = session_.machine().threads;
  for (Scenario& scenario : scenarios) {
    scenario.replicates = block_replicates;
    check_memory(scenario, *session_.backend, workers);
    plans_.push_back(make_plan(scenario));
  }
  scenarios_ = std::move(scenarios);
}

void BlockRuns::begin_block(std::uint64_t block, std::span<const std::size_t> members) {
  for (const std::size_t member : members) {
    Scenario& scenario = scenarios_[member];
    plans_[member].seed = block_seed(scenario.seed, block);
    if (auto* haar = std::get_if<HaarSubspaces>(&scenario.subspaces)) {
      haar->seed = plans_[member].seed;
      plans_[member].projections = make_head_frames(scenario).numbers();
    }
  }
}

std::vector<std::vector<std::size_t>> BlockRuns::groups(
    std::span<const std::size_t> members) const {
  const Backend& backend = *session_.backend;
  const int workers = backend.workers(thread_count(session_.threads));
  const std::uint64_t available = available_bytes();
  std::vector<std::vector<std::size_t>> all;
  std::vector<const Plan*> last;  // the plans of the last group
  for (const std::size_t member : members) {
    last.push_back(&plans_[member]);
    if (all.empty() || last.size() > backend.plans_together() ||
        simulation_bytes(last, block_replicates, backend, workers) > available) {
      last = {&plans_[member]};
      all.emplace_back();
    }
    all.back().push_back(member);
  }
  return all;
}

void BlockRuns::advance(std::span<const std::size_t> members, std::uint64_t blocks,
                        const ShareDone& share_done) {
  const std::vector<std::vector<std::size_t>> together = groups(members);
  const std::uint64_t first = errors_.at(members[0]).size();
  for (std::uint64_t b = first; b < blocks; ++b) {
    if (session_.should_stop()) throw TimeIsUp();
    begin_block(first_block_ + b, members);
    for (std::size_t g = 0; g < together.size(); ++g) {
      const std::vector<std::size_t>& group = together[g];
      std::vector<const Plan*> plans;
      for (const std::size_t member : group) plans.push_back(&plans_[member]);
      const std::vector<MomentTree> trees =
          simulate(plans, *session_.backend, session_.threads, block_replicates,
                   {.stop = session_.stop_hook()});
      if (trees[0].count() != block_replicates) throw TimeIsUp();
      for (std::size_t p = 0; p < group.size(); ++p) {
        const Plan& plan = *plans[p];
        const double error = estimate(trees[p], plan.head_weights, plan.truth).mse.value;
        if (!std::isfinite(error)) {
          throw CouldNotFinish("the mean squared error of " + std::to_string(plan.heads) +
                               " heads of dimension " + std::to_string(plan.k) +
                               " is not finite: values of the design, regression or noise leave "
                               "the range of the numbers in use - try --backend reference");
        }
        errors_[group[p]].push_back(error);
      }
      if (share_done) {
        const double part = static_cast<double>(g + 1) / static_cast<double>(together.size());
        share_done((static_cast<double>(b - first) + part) / static_cast<double>(blocks - first));
      }
    }
  }
}

Sampled BlockRuns::mse(std::size_t member) const {
  const std::vector<double>& errors = errors_.at(member);
  const auto count = static_cast<double>(errors.size());
  const double mean = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  std::vector<double> left_out;
  for (const double error : errors) left_out.push_back(mean + (mean - error) / (count - 1));
  return {mean, std::move(left_out)};
}

std::vector<double> BlockRuns::node_counts(std::size_t member) const {
  return std::vector<double>(errors_.at(member).size(), static_cast<double>(block_replicates));
}

}  // namespace headlab
