// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/tuning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <variant>

#include "validation/allocation/allocations.h"

namespace headlab {
namespace {

// Bandwidths are numbered by steps of 2^(1/16) from the scenario's.
constexpr double steps_an_octave = 16;
constexpr int coarse = 16;
constexpr int first_reach = 64;
constexpr int most_reach = first_reach + 128;

/// Blocks from here on are the pilot's: a selection takes fewer.
constexpr std::uint64_t first_pilot_block = std::uint64_t{1} << 38;

/// The kernel's width `step` steps from `from`. A temperature is the square of a bandwidth.
double width_at(const Scenario& scenario, double from, int step) {
  const double power = std::holds_alternative<SoftmaxKernel>(scenario.kernel) ? 2 : 1;
  return from * std::exp2(power * step / steps_an_octave);
}

/// The pilot of one allocation: errors by step.
struct Search {
  double from = 1;  ///< the scenario's width
  std::map<int, double> errors = {};

  int best() const {
    return std::min_element(errors.begin(), errors.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
};

/// Which steps of one search to try next; those tried already, or out of range, are left out.
using Proposal = std::vector<int> (*)(const Search&, int reach);

std::vector<int> first_grid(const Search&, int reach) {
  std::vector<int> steps;
  for (int step = -reach; step <= reach; step += coarse) steps.push_back(step);
  return steps;
}

/// One more step of the coarse grid, where the least error is at its end.
std::vector<int> beyond_the_end(const Search& search, int) {
  const int best = search.best();
  if (std::abs(best) >= most_reach) return {};
  if (best == search.errors.begin()->first) return {best - coarse};
  if (best == search.errors.rbegin()->first) return {best + coarse};
  return {};
}

std::vector<int> around_the_best(const Search& search, int reach) {
  const int best = search.best();
  return {best - reach, best + reach};
}

/// A kernel's width to be tried for one allocation.
struct Trial {
  std::size_t allocation;
  int step;
  double width;
};

class Pilot {
 public:
  Pilot(std::vector<Scenario>& scenarios, const Laboratory& laboratory, const ShareDone& share_done)
      : scenarios_(scenarios), laboratory_(laboratory), share_done_(share_done) {
    for (const Scenario& scenario : scenarios) {
      searches_.push_back({.from = kernel_width(scenario.kernel)});
    }
  }

  /// Simulates what `propose` says of every allocation; false where that is nothing.
  bool round(Proposal propose, int reach) {
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      for (const int step : propose(searches_[i], reach)) {
        const double width = width_at(scenarios_[i], searches_[i].from, step);
        const bool allowed = width >= least_kernel_width && width <= most_kernel_width;
        if (allowed && !searches_[i].errors.contains(step)) trials.push_back({i, step, width});
      }
    }
    // No more at once than are simulated together: a scenario may hold much data.
    const std::size_t most = laboratory_.backend->plans_together();
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
      const Search& search = searches_[i];
      const int best = search.best();
      set_kernel_width(scenarios_[i].kernel, width_at(scenarios_[i], search.from, best));
      if (best == search.errors.begin()->first || best == search.errors.rbegin()->first) {
        ++cost_.at_the_end;
      }
    }
    cost_.replicates = tuning_replicates;
    return cost_;
  }

 private:
  void simulate(std::span<const Trial> trials, const ShareDone& share_done) {
    std::vector<Scenario> scenarios;
    for (const Trial& trial : trials) {
      scenarios.push_back(scenarios_[trial.allocation]);
      set_kernel_width(scenarios.back().kernel, trial.width);
    }
    std::vector<std::size_t> all(trials.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    BlockRuns runs(std::move(scenarios), laboratory_, first_pilot_block);
    runs.advance(all, tuning_replicates / block_replicates, share_done);
    for (const std::size_t t : all) {
      searches_[trials[t].allocation].errors[trials[t].step] = runs.mse(t).value;
    }
  }

  std::vector<Scenario>& scenarios_;
  const Laboratory& laboratory_;
  const ShareDone& share_done_;
  std::vector<Search> searches_;
  TuningCost cost_;
};

}  // namespace

TuningCost tune(std::vector<Scenario>& scenarios, const Laboratory& laboratory,
                const ShareDone& share_done) {
  Pilot pilot(scenarios, laboratory, share_done);
  pilot.round(first_grid, first_reach);
  while (pilot.round(beyond_the_end, coarse)) {
  }
  for (int reach = coarse / 2; reach > 0; reach /= 2) pilot.round(around_the_best, reach);
  return pilot.finish();
}

}  // namespace headlab
