// SPDX-License-Identifier: Apache-2.0
/// \file How often verdicts and intervals are wrong, measured on claims whose truth is known.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/provenance.h"
#include "engine/run/session.h"
#include "validation/statistics/intervals.h"

namespace headlab {

/// What is counted, and what its rate must be.
enum class RateKind {
  false_alarm,    ///< a true claim is refuted: at most verdict_alpha
  false_support,  ///< a claim false by no more than its margin is supported: at most verdict_alpha
  power,          ///< a plainly false claim is refuted: at least 99 %
  coverage,       ///< a nominal 95 % interval holds the true figure: 95 %
  control,        ///< the same with an MCSE 30 % too small: must be seen not to be 95 %
  decided         ///< a true claim with room is supported and its opposite refuted: as it is
};

/// "false alarm", "false support", "power", "coverage", "control",
/// "decided".
const char* measured_text(RateKind measured);

/// One rate: how often something happened in runs that differ in their seed alone.
struct CalibrationRate {
  RateKind measured = RateKind::false_alarm;
  std::string what;    ///< the claim, or the figure
  std::string effect;  ///< how far the claim is from the truth
  std::uint64_t count = 0;
  std::uint64_t trials = 0;
  Interval interval = {};  ///< Clopper-Pearson, simultaneous over all rates of the table

  double rate() const { return static_cast<double>(count) / static_cast<double>(trials); }
  /// What the interval has to be, in words.
  std::string requirement() const;
  /// True where the interval does not contradict the required rate, or, for a control, where it
  /// does. False without trials.
  bool pass() const;

  template <class Visitor>
  void fields(Visitor& visit) const {
    const bool known = trials > 0;
    visit("measured", measured_text(measured), "what is counted");
    visit("what", what, "the claim, or the figure");
    visit("effect", effect, "how far the claim is from the truth");
    visit("count", count, "how often it happened");
    visit("trials", trials, "in so many runs");
    visit("rate", known ? std::optional(rate()) : std::nullopt, "count / trials");
    visit("interval", known ? std::optional(std::pair(interval.low, interval.high)) : std::nullopt,
          "Clopper-Pearson interval of the rate");
    visit("required", requirement(), "what the interval has to be");
    visit("pass", known ? std::optional(pass()) : std::nullopt, "the interval is as required");
  }
};

/// Runs that differ in their seed alone, and the rates they count.
struct CalibrationStudy {
  std::vector<CalibrationRate> rates;
  std::uint64_t trials = 0;  ///< at level quick
  /// One run on one thread; which of the rates it adds to.
  std::function<std::vector<bool>(std::uint64_t seed)> trial;
};

struct CalibrateOptions {
  bool full = false;  ///< ten times the runs
  std::uint64_t seed = 0;
};

/// Confidence of all intervals of a table at once (Bonferroni).
inline constexpr double calibration_confidence = 0.95;

struct Calibration {
  std::vector<CalibrationRate> rates;
  Machine machine;
  Outcome outcome;

  /// Whether every rate passes; unknown where not all runs were done.
  std::optional<bool> pass() const;
  /// All rates of one kind together.
  CalibrationRate total(RateKind measured) const;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("complete", outcome.complete, "all runs were done");
    visit("confidence", calibration_confidence, "of all intervals together");
    visit("pass", pass(), "every rate is as required");
    visit("seconds", outcome.seconds, "wall time", {.unit = "s"});
    visit("rates", rates, "rates", {.item = "rate"});
  }
};

/// Repeats studies with seeds that follow from `options.seed`. Counts are the same for any number
/// of threads. Reports the runs done. Where the session has units, runs are taken from there and
/// kept there; a shard does its own alone. Without studies it is not complete. Throws InvalidInput
/// for a backend that is not there.
Calibration calibrate(std::vector<CalibrationStudy> studies, const Session& session = {},
                      const CalibrateOptions& options = {});

/// Calibration for programs, one JSON object with every rate; those without trials have null for
/// rate and interval (docs/verdicts.md says what each key means).
std::string calibration_json(const Calibration& calibration, const Provenance& program);

/// So often in so many runs, when it was last measured: the worst row of each kind in the table of
/// docs/measured/calibration.md, whose sentence a test compares with this.
struct CalibrationCount {
  std::uint64_t count;
  std::uint64_t trials;
};

struct CalibrationRecord {
  CalibrationCount true_refuted;     ///< true claims that were refuted
  CalibrationCount false_supported;  ///< claims false by exactly their margin that were supported
  CalibrationCount false_refuted;    ///< plainly false claims that were refuted
  const char* date;
  const char* command;
};

inline constexpr CalibrationRecord calibration_record = {.true_refuted = {21, 2000},
                                                         .false_supported = {17, 2000},
                                                         .false_refuted = {2000, 2000},
                                                         .date = "2026-11-27",
                                                         .command = "headlab validate --calibrate"};

/// The record in one sentence, each rate with the end of its 95 % Clopper-Pearson interval that
/// speaks against the program.
std::string calibration_sentence(const CalibrationRecord& record = calibration_record);

/// What `headlab validate --calibrate` repeats: claims known to be true, claims known to be false,
/// and figures known exactly, on the backend of the session. Closed forms are computed here,
/// once, on its threads. None where the session is to stop meanwhile.
std::vector<CalibrationStudy> calibration_studies(const Session& session);

}  // namespace headlab
