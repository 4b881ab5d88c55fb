// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>

#include "engine/files/enumerators.h"
#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"
#include "engine/files/words.h"
#include "engine/run/message_bytes.h"
#include "engine/run/units.h"
#include "kernels/parallel_for.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

constexpr double nominal_power = 0.99;
constexpr double nominal_coverage = 0.95;
constexpr std::uint64_t full_trials = 10;
/// Seeds of one study, so that no two studies share a run; all below 2^53.
constexpr std::uint64_t seeds_of_study = std::uint64_t{1} << 20;
constexpr std::uint64_t seed_count = std::uint64_t{1} << 53;

/// Runs that are kept together, where runs are kept.
constexpr std::uint64_t runs_of_unit = 20;

/// Hears that so many more runs begin; true: stop.
using StopBefore = std::function<bool(std::uint64_t runs)>;

/// One study under way. Which thread has which run does not matter: counts are sums.
class Repetition {
 public:
  Repetition(CalibrationStudy& study, std::size_t number, std::uint64_t first_seed, Units* units)
      : study_(study), number_(number), first_seed_(first_seed), units_(units) {}

  /// False where it was stopped.
  bool run(int threads, const StopBefore& stop) {
    const std::uint64_t count = (study_.trials + runs_of_unit - 1) / runs_of_unit;
    parallel_for(count, threads, [&](std::size_t i) { run_unit(i, stop); });
    return !stopped_;
  }

 private:
  void run_unit(std::uint64_t unit, const StopBefore& stop) {
    const std::uint64_t first = unit * runs_of_unit;
    const std::uint64_t end = std::min(first + runs_of_unit, study_.trials);
    const std::string name =
        "study " + std::to_string(number_) + ", runs from " + std::to_string(first);
    if (units_) {
      if (const std::optional<std::string> kept = units_->find(name)) {
        stop(end - first);
        add(end - first, MessageReader(*kept).numbers<std::uint64_t>());
        return;
      }
      if (!units_->has_part(number_ + unit)) return;
    }
    std::vector<std::uint64_t> counts(study_.rates.size());
    std::uint64_t done = first;
    for (; done < end; ++done) {
      if (stopped_ || stop(1)) {
        stopped_ = true;
        break;
      }
      const std::vector<bool> outcome = study_.trial((first_seed_ + done) % seed_count);
      if (outcome.size() != counts.size()) {
        throw std::logic_error("a calibration run has other rates than its study");
      }
      for (std::size_t r = 0; r < counts.size(); ++r) counts[r] += outcome[r] ? 1 : 0;
    }
    add(done - first, counts);
    if (!units_ || done < end) return;
    MessageWriter bytes;
    bytes.put(counts);
    units_->keep(name, std::move(bytes).bytes());
  }

  void add(std::uint64_t runs, const std::vector<std::uint64_t>& counts) {
    const std::lock_guard lock(mutex_);
    for (std::size_t r = 0; r < study_.rates.size(); ++r) {
      study_.rates[r].count += counts.at(r);
      study_.rates[r].trials += runs;
    }
  }

  CalibrationStudy& study_;
  std::size_t number_;
  std::uint64_t first_seed_;
  Units* units_;
  std::mutex mutex_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

const char* measured_text(RateKind measured) {
  return word_of<RateKind::decided>(measured, "false alarm", "false support", "power", "coverage",
                                    "control", "decided");
}

std::string CalibrationRate::requirement() const {
  return word_of<RateKind::decided>(measured, "low end at most 1 %", "low end at most 1 %",
                                    "high end at least 99 %", "95 % inside", "95 % outside",
                                    "none");
}

bool CalibrationRate::pass() const {
  if (trials == 0) return false;
  const bool covers = interval.low <= nominal_coverage && nominal_coverage <= interval.high;
  switch (measured) {
    case RateKind::false_alarm:
    case RateKind::false_support:
      return interval.low <= verdict_alpha;
    case RateKind::power:
      return interval.high >= nominal_power;
    case RateKind::coverage:
      return covers;
    case RateKind::control:
      return !covers;
    case RateKind::decided:
      return true;
  }
  return false;
}

std::optional<bool> Calibration::pass() const {
  if (!outcome.complete) return std::nullopt;
  return std::ranges::all_of(rates, &CalibrationRate::pass);
}

CalibrationRate Calibration::total(RateKind measured) const {
  CalibrationRate sum{.measured = measured};
  for (const CalibrationRate& rate : rates) {
    if (rate.measured != measured) continue;
    sum.count += rate.count;
    sum.trials += rate.trials;
  }
  if (sum.trials > 0) {
    sum.interval = clopper_pearson(sum.count, sum.trials, calibration_confidence);
  }
  return sum;
}

Calibration calibrate(std::vector<CalibrationStudy> studies, const Session& session,
                      const CalibrateOptions& options) {
  const Stopwatch watch;
  Calibration result{.machine = session.machine()};

  std::uint64_t total = 0;
  for (CalibrationStudy& study : studies) {
    study.trials *= options.full ? full_trials : 1;
    total += study.trials;
  }
  std::atomic<std::uint64_t> asked = 0;
  std::mutex telling;
  const StopBefore stop = [&](std::uint64_t runs) {
    if (session.report) {
      const std::lock_guard lock(telling);
      const double share = static_cast<double>(asked) / static_cast<double>(total);
      session.report({.done = asked, .total = total, .what = "runs", .share = share});
    }
    asked += runs;
    return session.should_stop();
  };
  bool complete = !studies.empty();  // a stop may come before there are any
  for (std::size_t s = 0; s < studies.size(); ++s) {
    Repetition study(studies[s], s, options.seed + s * seeds_of_study, session.units);
    complete = study.run(result.machine.threads, stop) && complete;
  }
  for (const CalibrationStudy& study : studies) {
    result.rates.insert(result.rates.end(), study.rates.begin(), study.rates.end());
  }
  const double tail = (1 - calibration_confidence) /
                      static_cast<double>(std::max<std::size_t>(result.rates.size(), 1));
  for (CalibrationRate& rate : result.rates) {
    if (rate.trials > 0) rate.interval = clopper_pearson(rate.count, rate.trials, 1 - tail);
  }
  result.outcome = session.outcome(complete, watch);
  return result;
}

namespace {

std::string of(const CalibrationCount& counted) {
  return std::to_string(counted.count) + " of " + std::to_string(counted.trials);
}

std::string percentage(double share) {
  return formatted("%.2f %%", 100 * share);
}

Interval interval(const CalibrationCount& counted) {
  return clopper_pearson(counted.count, counted.trials, calibration_confidence);
}

}  // namespace

std::string calibration_json(const Calibration& calibration, const Provenance& program) {
  return json_text(MadeDocument{MadeBy{program, calibration.machine},
                                [&](auto& visit) { calibration.fields(visit); }});
}

std::string calibration_sentence(const CalibrationRecord& record) {
  return "in the hardest cases " + of(record.true_refuted) + " true claims were refuted (at most " +
         percentage(interval(record.true_refuted).high) + "), " + of(record.false_supported) +
         " claims false by just their margin supported (at most " +
         percentage(interval(record.false_supported).high) + "), " + of(record.false_refuted) +
         " planted false ones refuted (at least " + percentage(interval(record.false_refuted).low) +
         ")";
}

}  // namespace headlab
