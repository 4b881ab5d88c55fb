// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/enumerators.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

/// One call, and what it has found so far.
class Selector {
 public:
  Selector(const Condition& base, int budget, const Session& session,
           const AllocateOptions& options)
      : session_(session), options_(options) {
    require_replicates(options);
    study_.machine = session.machine();
    conditions_ = allocation_conditions(base, budget, options.rule, options.dims);
    study_.budget = budget;
    study_.n = base.n;
    study_.fixed_design = base.fixed_design;
    study_.seed = base.seed;
    study_.parameters = base.parameters;
    study_.queries = query_count(base);
    study_.rule = options.rule;
    study_.guarantee = options.guarantee;
    for (const Condition& condition : conditions_) {
      study_.rows.push_back(
          {.heads = condition.heads,
           .k = condition.k,
           .subspaces = std::visit([](const auto& law) { return law.name; }, *condition.subspaces),
           .kernel = *condition.kernel});
    }
  }

  AllocationStudy run() {
    bool complete = true;
    try {
      if (options_.rule == BandwidthRule::tuned) tune_all();
      select();
    } catch (const TimeIsUp&) {
      complete = false;
    }
    study_.outcome = session_.outcome(complete, watch_);
    return std::move(study_);
  }

 private:
  void tune_all() {
    study_.tuning = tune(conditions_, session_, session_.stage("pilot for the bandwidths"));
    for (std::size_t i = 0; i < conditions_.size(); ++i) {
      study_.rows[i].kernel = *conditions_[i].kernel;
    }
  }

  void select() {
    BlockRuns runs(conditions_, session_);
    std::vector<std::size_t> racing(conditions_.size());
    std::iota(racing.begin(), racing.end(), std::size_t{0});
    const std::vector<std::uint64_t> looks = selection_looks(options_.replicates);
    const double level = comparison_level(options_.guarantee.alpha, racing.size(), looks.size());
    for (std::size_t i = 0; i < looks.size(); ++i) {
      if (session_.should_stop()) throw TimeIsUp();
      const std::uint64_t replicates = looks[i];
      runs.advance(
          racing, replicates / block_replicates,
          session_.stage("look " + std::to_string(i + 1) + " of " + std::to_string(looks.size()) +
                         ", " + counted(racing.size(), "allocation")));
      const Screening screening = look(runs, racing, level);
      std::vector<std::size_t> kept;
      for (std::size_t c = 0; c < racing.size(); ++c) {
        study_.rows[racing[c]].in_best_set = screening.kept[c];
        if (screening.kept[c]) kept.push_back(racing[c]);
      }
      study_.advised = racing[screening.least];
      study_.largest_loss = screening.largest_loss;
      racing = std::move(kept);
      if (racing.size() == 1 || screening.largest_loss <= options_.guarantee.zone) {
        study_.kind = racing.size() == 1 ? AdviceKind::best : AdviceKind::within_zone;
        return;
      }
      study_.replicates_needed = static_cast<double>(replicates) * screening.growth;
    }
    study_.kind = AdviceKind::too_close;
  }

  /// Screens those in the race, and notes what is known of them.
  Screening look(const BlockRuns& runs, const std::vector<std::size_t>& racing, double level) {
    std::vector<Jackknifed> errors;
    for (const std::size_t member : racing) {
      errors.push_back(runs.mse(member));
      AllocationRow& row = study_.rows[member];
      row.mse = runs.mse(member).figure(runs.node_counts(member));
      row.replicates = runs.replicates(member);
    }
    return screen(errors, runs.node_counts(racing.front()), level, options_.guarantee.zone);
  }

  const Session& session_;
  const AllocateOptions& options_;
  const Stopwatch watch_;
  std::vector<Condition> conditions_;
  AllocationStudy study_;
};

std::string percent(double share) {
  return number_text(std::round(share * 1e4) / 100) + " %";
}

std::string heads_text(const AllocationRow& row) {
  return counted(static_cast<std::uint64_t>(row.heads), "head") + " of dimension " +
         std::to_string(row.k);
}

/// `count`, rounded up to two digits, as it may be written on the command line.
std::string rounded_up(double count) {
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(count)) - 1));
  return number_text(std::ceil(count / unit) * unit);
}

}  // namespace

const char* advice_name(AdviceKind kind) {
  return word_of<AdviceKind::unfinished>(kind, "best", "within zone", "too close to call",
                                         "unfinished");
}

AllocationStudy allocate(const Condition& base, int budget, const Session& session,
                         const AllocateOptions& options) {
  return Selector(base, budget, session, options).run();
}

std::string advice_text(const AllocationStudy& study) {
  const std::string ended = study.outcome.interrupted ? "Interrupted" : "Time was up";
  if (!study.advised) return ended + " before the first look: nothing is known.";
  const std::string advised = heads_text(study.rows[*study.advised]);
  const char* const have = study.rows[*study.advised].heads == 1 ? " has" : " have";
  const std::string sure = percent(1 - study.guarantee.alpha);
  const auto left = std::count_if(study.rows.begin(), study.rows.end(),
                                  [](const AllocationRow& row) { return row.in_best_set; });
  const std::string may_be_best = std::to_string(left) + " allocations may be the best";
  switch (study.kind) {
    case AdviceKind::best:
      if (study.rows.size() == 1) return advised + ": there is no other allocation.";
      return advised + ": the best of " + counted(study.rows.size(), "allocation") +
             ", with probability " + sure + " at least.";
    case AdviceKind::within_zone:
      return advised + ": " + may_be_best + ", and with probability " + sure +
             " at least none has an MSE lower by more than " + percent(study.guarantee.zone) + ".";
    case AdviceKind::too_close:
      return "Too close to call: " + advised + have + " the least estimated MSE, but " +
             may_be_best + "; " +
             (std::isfinite(study.replicates_needed)
                  ? "about " + rounded_up(study.replicates_needed) +
                        " replicates decide if errors are what they look like."
                  : "no number of replicates is sure to decide.");
    case AdviceKind::unfinished:
      return ended + ": " + advised + have + " the least estimated MSE so far, but " + may_be_best +
             ".";
  }
  return "";
}

std::string advice_limits(const AllocationStudy& study) {
  std::vector<std::string> laws;
  for (const AllocationRow& row : study.rows) {
    if (std::find(laws.begin(), laws.end(), row.subspaces) == laws.end()) {
      laws.push_back(row.subspaces);
    }
  }
  std::string heads;
  for (const std::string& law : laws) {
    heads += (heads.empty() ? "" : " and ") + law + " heads";
    if (law == HaarSubspaces::name) heads += " (the mean over their draws)";
  }
  const std::string world = study.fixed_design
                                ? "this one set of design points, this truth and noise"
                                : "this design, truth and noise";
  return "It holds for " + world + ", n " + std::to_string(study.n) + ", " +
         counted(static_cast<std::uint64_t>(study.queries), "query", "queries") + ", " + heads +
         " and kernel widths by rule " + rule_name(study.rule) +
         "; another of these may change it.";
}

}  // namespace headlab
