// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/block_runs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "engine/moments/estimates.h"
#include "engine/run/memory.h"
#include "engine/run/message_bytes.h"
#include "engine/run/not_finite.h"
#include "engine/run/simulate.h"
#include "engine/run/units.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/counted.h"
#include "kernels/parallel_for.h"
#include "kernels/philox.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

/// The seed of a block. Heads take the streams of `haar` from the first on, and there are at most
/// 1024: the upper half is free.
std::uint64_t block_seed(std::uint64_t seed, std::uint64_t block) {
  constexpr std::uint64_t upper_half = std::uint64_t{1} << 39;
  const Words words = philox(seed, subsequence(Purpose::haar, upper_half + block), 0);
  return (std::uint64_t{words.w[1]} << 32) | words.w[0];
}

std::vector<const Plan*> pointers_to(std::span<const Plan> plans) {
  std::vector<const Plan*> pointers;
  for (const Plan& plan : plans) pointers.push_back(&plan);
  return pointers;
}

}  // namespace

BlockRuns::BlockRuns(std::vector<Condition> conditions, Session session, std::uint64_t first_block)
    : session_(std::move(session)), first_block_(first_block), errors_(conditions.size()) {
  if (session_.units) unit_ = session_.units->next_name(session_.unit);
  const int workers = session_.machine().threads;
  for (Condition& condition : conditions) {
    if (session_.should_stop()) throw TimeIsUp();
    condition.replicates = block_replicates;
    check_memory(condition, *session_.backend, workers);
  }
  conditions_ = std::move(conditions);
}

BlockRuns::~BlockRuns() = default;

void BlockRuns::begin_block(std::uint64_t block, std::size_t member, Plan& plan) {
  Condition& condition = conditions_[member];
  plan.seed = block_seed(condition.seed, block);
  if (std::holds_alternative<HaarSubspaces>(*condition.subspaces)) {
    std::get<HaarSubspaces>(condition.subspaces.own()).seed = plan.seed;
    plan.projections = make_subspaces(condition).numbers();
  }
}

std::vector<Plan> BlockRuns::next_plans(std::span<const std::size_t> members,
                                        std::optional<Plan>& next) const {
  const Backend& backend = *session_.backend;
  const int workers = backend.workers(thread_count(session_.threads));
  const std::uint64_t available = available_bytes();
  std::vector<Plan> plans;
  for (const std::size_t member : members) {
    if (plans.size() == std::max<std::size_t>(1, backend.plans_together())) break;
    if (!next) next = make_plan(conditions_[member]);
    if (!plans.empty()) {
      next->table.share_with(plans.front().table);
      std::vector<const Plan*> together = pointers_to(plans);
      together.push_back(&*next);
      if (simulation_bytes(together, block_replicates, backend, workers) > available) break;
    }
    plans.push_back(std::move(*next));
    next.reset();
  }
  return plans;
}

void BlockRuns::simulate_block(std::span<const std::size_t> group, std::span<const Plan> plans) {
  const std::vector<MomentTree> trees =
      simulate(pointers_to(plans), *session_.backend, session_.threads, block_replicates,
               {.stop = session_.stop_hook()});
  if (trees[0].count() != block_replicates) throw TimeIsUp();
  for (std::size_t p = 0; p < group.size(); ++p) {
    const Plan& plan = plans[p];
    const double error = estimate(trees[p], plan).mse.value;
    if (!std::isfinite(error)) {
      throw RunFailed("the mean squared error of " +
                      counted(static_cast<std::uint64_t>(plan.heads), "head") + " of dimension " +
                      std::to_string(plan.k) +
                      " is not finite: " + why_not_finite(plan, block_replicates));
    }
    errors_[group[p]].push_back(error);
  }
}

std::string BlockRuns::unit_of(std::size_t member) const {
  return unit_ + ", member " + std::to_string(member);
}

void BlockRuns::take_kept(std::size_t member, std::uint64_t blocks) {
  if (!session_.units) return;
  const std::optional<std::string> kept = session_.units->find(unit_of(member));
  if (!kept) return;
  const auto errors = MessageReader(*kept).numbers<double>();
  std::vector<double>& mine = errors_.at(member);
  for (std::size_t b = mine.size(); b < std::min<std::size_t>(errors.size(), blocks); ++b) {
    mine.push_back(errors[b]);
  }
}

void BlockRuns::advance(std::span<const std::size_t> members, std::uint64_t blocks,
                        const ShareDone& share_done) {
  for (const std::size_t member : members) take_kept(member, blocks);
  std::optional<Plan> next;
  for (std::size_t done = 0; done < members.size();) {
    if (session_.should_stop()) throw TimeIsUp();
    // Those from here on that have equally many blocks.
    const std::uint64_t first = errors_.at(members[done]).size();
    std::size_t end = done + 1;
    while (end < members.size() && errors_.at(members[end]).size() == first) ++end;
    if (first >= blocks) {
      done = end;
      continue;
    }
    std::vector<Plan> plans = next_plans(members.subspan(done, end - done), next);
    const std::span<const std::size_t> group = members.subspan(done, plans.size());
    for (std::uint64_t b = first; b < blocks; ++b) {
      if (session_.should_stop()) throw TimeIsUp();
      for (std::size_t p = 0; p < group.size(); ++p) {
        begin_block(first_block_ + b, group[p], plans[p]);
      }
      simulate_block(group, plans);
      if (session_.units) {
        for (const std::size_t member : group) keep(member);
      }
      if (share_done) {
        const double part =
            static_cast<double>(b + 1 - first) / static_cast<double>(blocks - first);
        share_done((static_cast<double>(done) + part * static_cast<double>(group.size())) /
                   static_cast<double>(members.size()));
      }
    }
    done += group.size();
  }
}

void BlockRuns::keep(std::size_t member) {
  MessageWriter bytes;
  bytes.put(errors_.at(member));
  session_.units->keep(unit_of(member), std::move(bytes).bytes());
}

Jackknifed BlockRuns::mse(std::size_t member) const {
  const std::vector<double>& errors = errors_.at(member);
  const auto count = static_cast<double>(errors.size());
  const double mean = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  std::vector<double> leave_one_out;
  for (const double error : errors) leave_one_out.push_back(mean + (mean - error) / (count - 1));
  return {mean, std::move(leave_one_out)};
}

std::vector<double> BlockRuns::node_counts(std::size_t member) const {
  return std::vector<double>(errors_.at(member).size(), static_cast<double>(block_replicates));
}

}  // namespace headlab
