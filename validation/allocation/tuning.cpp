// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <span>
#include <utility>

#include "engine/scenario/condition.h"
#include "kernels/kernel_laws.h"
#include "validation/allocation/allocations.h"

namespace headlab {
namespace {

/// Blocks from here on are the pilot's: a selection takes fewer.
constexpr std::uint64_t first_pilot_block = std::uint64_t{1} << 38;

/// A kernel's width to be tried for one allocation.
struct Trial {
  std::size_t allocation;
  int step;
  double width;
};

class Pilot {
 public:
  Pilot(std::vector<Condition>& conditions, const Session& session, const ShareDone& share_done)
      : conditions_(conditions), session_(session), share_done_(share_done) {
    for (const Condition& condition : conditions) searches_.emplace_back(condition);
  }

  /// Simulates what `propose` says of every allocation; false where that is nothing.
  template <class Propose>
  bool round(const Propose& propose) {
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      for (const int step : propose(searches_[i])) {
        if (searches_[i].is_new(step)) trials.push_back({i, step, searches_[i].width(step)});
      }
    }
    // No more at once than are simulated together: a scenario may hold much data.
    const std::size_t most = session_.backend->plans_together();
    for (std::size_t first = 0; first < trials.size(); first += most) {
      const std::size_t count = std::min(most, trials.size() - first);
      simulate(std::span(trials).subspan(first, count), [&](double share) {
        if (share_done_) {
          share_done_((static_cast<double>(first) + share * static_cast<double>(count)) /
                      static_cast<double>(trials.size()));
        }
      });
    }
    cost_.settings += trials.size();
    return !trials.empty();
  }

  TuningCost finish() {
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      set_kernel_width(conditions_[i].kernel.own(), searches_[i].best_width());
      if (searches_[i].is_at_boundary()) ++cost_.at_boundary;
    }
    cost_.replicates = tuning_replicates;
    return cost_;
  }

 private:
  void simulate(std::span<const Trial> trials, const ShareDone& share_done) {
    std::vector<Condition> conditions;
    for (const Trial& trial : trials) {
      conditions.push_back(conditions_[trial.allocation]);
      set_kernel_width(conditions.back().kernel.own(), trial.width);
    }
    std::vector<std::size_t> all(trials.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    BlockRuns runs(std::move(conditions), session_, first_pilot_block);
    runs.advance(all, tuning_replicates / block_replicates, share_done);
    for (const std::size_t t : all) {
      searches_[trials[t].allocation].errors[trials[t].step] = runs.mse(t).value;
    }
  }

  std::vector<Condition>& conditions_;
  const Session& session_;
  const ShareDone& share_done_;
  std::vector<OctaveSearch> searches_;
  TuningCost cost_;
};

}  // namespace

TuningCost tune(std::vector<Condition>& conditions, const Session& session,
                const ShareDone& share_done) {
  Pilot pilot(conditions, session, share_done);
  pilot.round([](const OctaveSearch& search) { return search.first_grid(); });
  while (pilot.round([](const OctaveSearch& search) { return search.beyond_the_end(); })) {
  }
  for (int reach = OctaveSearch::octave / 2; reach > 0; reach /= 2) {
    pilot.round([&](const OctaveSearch& search) { return search.around_the_best(reach); });
  }
  return pilot.finish();
}

namespace {

constexpr int first_reach = 4 * OctaveSearch::octave;
constexpr int max_reach = first_reach + 8 * OctaveSearch::octave;

}  // namespace

OctaveSearch::OctaveSearch(const Condition& condition)
    : from_(kernel_width(*condition.kernel)), power_(is_softmax(condition) ? 2 : 1) {}

double OctaveSearch::width(int step) const {
  return from_ * std::exp2(power_ * step / octave);
}

bool OctaveSearch::is_new(int step) const {
  const double value = width(step);
  return value >= min_kernel_width && value <= max_kernel_width && !errors.contains(step);
}

int OctaveSearch::best() const {
  return std::ranges::min_element(errors, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

bool OctaveSearch::is_at_boundary() const {
  return best() == errors.begin()->first || best() == errors.rbegin()->first;
}

std::vector<int> OctaveSearch::first_grid() const {
  std::vector<int> steps;
  for (int step = -first_reach; step <= first_reach; step += octave) steps.push_back(step);
  return steps;
}

std::vector<int> OctaveSearch::beyond_the_end() const {
  if (std::abs(best()) >= max_reach) return {};
  if (best() == errors.begin()->first) return {best() - octave};
  if (best() == errors.rbegin()->first) return {best() + octave};
  return {};
}

std::vector<int> OctaveSearch::around_the_best(int reach) const {
  return {best() - reach, best() + reach};
}

}  // namespace headlab
