// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "engine/files/error.h"
#include "engine/run/simulate.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

constexpr double nominal_power = 0.99;
constexpr double nominal_coverage = 0.95;
constexpr std::uint64_t full_factor = 10;
/// Seeds of one study, so that no two studies share a run; all below 2^53.
constexpr std::uint64_t seeds_of_study = std::uint64_t{1} << 20;
constexpr std::uint64_t seeds = std::uint64_t{1} << 53;

/// Deals runs of one study to threads. Which thread gets which does not matter: counts are sums.
class Repetition {
 public:
  Repetition(CalibrationStudy& study, std::uint64_t trials, std::uint64_t first_seed,
             const std::function<bool()>& stop)
      : study_(study), trials_(trials), first_seed_(first_seed), stop_(stop) {}

  void run(int threads) {
    {
      std::vector<std::jthread> pool;
      for (int i = 0; i < threads; ++i) pool.emplace_back([this] { work(); });
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() {
    std::vector<std::uint64_t> counts(study_.rates.size(), 0);
    std::uint64_t done = 0;
    try {
      for (std::uint64_t i = next_++; i < trials_ && !stop_(); i = next_++) {
        const std::vector<bool> outcome = study_.trial((first_seed_ + i) % seeds);
        if (outcome.size() != counts.size()) {
          throw std::logic_error("a calibration run has other rates than its study");
        }
        for (std::size_t r = 0; r < counts.size(); ++r) counts[r] += outcome[r] ? 1 : 0;
        ++done;
      }
    } catch (...) {
      next_ = trials_;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    for (std::size_t r = 0; r < counts.size(); ++r) {
      study_.rates[r].count += counts[r];
      study_.rates[r].trials += done;
    }
  }

  CalibrationStudy& study_;
  std::uint64_t trials_;
  std::uint64_t first_seed_;
  const std::function<bool()>& stop_;
  std::atomic<std::uint64_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

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
    Repetition(studies[s], studies[s].trials, options.seed + s * seeds_of_study, stop)
        .run(result.machine.threads);
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
