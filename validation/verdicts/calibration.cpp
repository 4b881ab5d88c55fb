// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "engine/files/error.h"
#include "kernels/parallel_for.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

constexpr double nominal_power = 0.99;
constexpr double nominal_coverage = 0.95;
constexpr std::uint64_t full_factor = 10;
/// Seeds of one study, so that no two studies share a run; all below 2^53.
constexpr std::uint64_t seeds_of_study = std::uint64_t{1} << 20;
constexpr std::uint64_t seeds = std::uint64_t{1} << 53;

/// Runs the trials of one study on several threads, seeds from `first_seed` on. Which thread has
/// which does not matter: counts are sums.
void repeat(CalibrationStudy& study, std::uint64_t first_seed, int threads,
            const std::function<bool()>& stop) {
  std::mutex mutex;
  std::atomic<bool> stopped = false;
  parallel_for(study.trials, threads, [&](std::size_t i) {
    if (stopped || stop()) {
      stopped = true;
      return;
    }
    const std::vector<bool> outcome = study.trial((first_seed + i) % seeds);
    if (outcome.size() != study.rates.size()) {
      throw std::logic_error("a calibration run has other rates than its study");
    }
    const std::lock_guard lock(mutex);
    for (std::size_t r = 0; r < outcome.size(); ++r) {
      study.rates[r].count += outcome[r] ? 1 : 0;
      ++study.rates[r].trials;
    }
  });
}

}  // namespace

const char* measured_text(Measured measured) {
  switch (measured) {
    case Measured::false_alarm:
      return "false alarm";
    case Measured::false_support:
      return "false support";
    case Measured::power:
      return "power";
    case Measured::coverage:
      return "coverage";
    case Measured::control:
      return "control";
  }
  return "";
}

std::string CalibrationRate::requirement() const {
  switch (measured) {
    case Measured::false_alarm:
    case Measured::false_support:
      return "low end at most 1 %";
    case Measured::power:
      return "high end at least 99 %";
    case Measured::coverage:
      return "95 % inside";
    case Measured::control:
      return "95 % outside";
  }
  return "";
}

bool CalibrationRate::pass() const {
  if (trials == 0) return false;
  const bool covers = interval.low <= nominal_coverage && nominal_coverage <= interval.high;
  switch (measured) {
    case Measured::false_alarm:
    case Measured::false_support:
      return interval.low <= verdict_alpha;
    case Measured::power:
      return interval.high >= nominal_power;
    case Measured::coverage:
      return covers;
    case Measured::control:
      return !covers;
  }
  return false;
}

std::optional<bool> Calibration::pass() const {
  if (!outcome.complete) return std::nullopt;
  return std::ranges::all_of(rates, &CalibrationRate::pass);
}

CalibrationRate Calibration::total(Measured measured) const {
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
    study.trials *= options.full ? full_factor : 1;
    total += study.trials;
  }
  std::atomic<std::uint64_t> asked = 0;
  std::mutex telling;
  const std::function<bool()> stop = [&] {
    if (session.report) {
      const std::lock_guard lock(telling);
      const double share = static_cast<double>(asked) / static_cast<double>(total);
      session.report({.done = asked, .total = total, .what = "runs", .share = share});
    }
    ++asked;
    return session.should_stop();
  };
  for (std::size_t s = 0; s < studies.size(); ++s) {
    repeat(studies[s], options.seed + s * seeds_of_study, result.machine.threads, stop);
  }

  bool complete = true;
  for (const CalibrationStudy& study : studies) {
    complete = complete && std::all_of(study.rates.begin(), study.rates.end(),
                                       [&](const CalibrationRate& rate) {
                                         return rate.trials == study.trials;
                                       });
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

}  // namespace headlab
