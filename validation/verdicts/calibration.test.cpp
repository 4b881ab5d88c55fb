// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration.h"

#include <atomic>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "kernels/testing/paths.h"

namespace headlab {
namespace {

CalibrationRate rate(RateKind measured, std::uint64_t count, std::uint64_t trials) {
  return {.measured = measured,
          .count = count,
          .trials = trials,
          .interval = clopper_pearson(count, trials, 0.95)};
}

/// A study whose outcome is known for every seed: one rate in ten, and none.
CalibrationStudy known_scenario() {
  return {.rates = {{.measured = RateKind::false_alarm, .what = "a"},
                    {.measured = RateKind::false_alarm, .what = "b"}},
          .trials = 1000,
          .trial = [](std::uint64_t seed) {
            return std::vector<bool>{seed % 10 == 0, false};
          }};
}

TEST(CalibrationRate, PassesUntilItsIntervalContradicts) {
  EXPECT_TRUE(rate(RateKind::false_alarm, 20, 2000).pass());
  EXPECT_TRUE(rate(RateKind::false_alarm, 24, 2000).pass());
  EXPECT_FALSE(rate(RateKind::false_alarm, 40, 2000).pass());
  EXPECT_FALSE(rate(RateKind::false_support, 40, 2000).pass());
  EXPECT_TRUE(rate(RateKind::power, 1978, 2000).pass());
  EXPECT_FALSE(rate(RateKind::power, 1950, 2000).pass());
  EXPECT_TRUE(rate(RateKind::coverage, 1905, 2000).pass());
  EXPECT_FALSE(rate(RateKind::coverage, 1860, 2000).pass());
  EXPECT_FALSE(rate(RateKind::coverage, 1940, 2000).pass());
  // A control is caught where the same interval would fail.
  EXPECT_TRUE(rate(RateKind::control, 1660, 2000).pass());
  EXPECT_FALSE(rate(RateKind::control, 1905, 2000).pass());
  EXPECT_FALSE(CalibrationRate{.measured = RateKind::false_alarm}.pass());
}

TEST(Calibrate, CountsTheSameOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5}) {
    const Calibration seen = calibrate({known_scenario(), known_scenario()}, {.threads = threads});
    ASSERT_EQ(seen.rates.size(), 4U);
    EXPECT_TRUE(seen.outcome.complete);
    EXPECT_EQ(seen.rates[0].count, 100U);
    EXPECT_EQ(seen.rates[0].trials, 1000U);
    EXPECT_EQ(seen.rates[1].count, 0U);
    EXPECT_FALSE(seen.rates[0].pass());
    EXPECT_TRUE(seen.rates[1].pass());
    EXPECT_EQ(seen.pass(), false);
    EXPECT_EQ(seen.total(RateKind::false_alarm).count, 200U + seen.rates[2].count - 100U);
  }
}

TEST(Calibrate, IntervalsHoldTogether) {
  const Calibration one = calibrate({known_scenario()}, {.threads = 1});
  // Bonferroni: two rates, 97.5 % each.
  const Interval expected = clopper_pearson(100, 1000, 0.975);
  EXPECT_DOUBLE_EQ(one.rates[0].interval.low, expected.low);
  EXPECT_DOUBLE_EQ(one.rates[0].interval.high, expected.high);
  EXPECT_LT(expected.low, clopper_pearson(100, 1000, 0.95).low);
}

TEST(Calibrate, SeedsOfStudiesAndOfCallsDiffer) {
  std::mutex mutex;
  std::multiset<std::uint64_t> seen;
  CalibrationStudy study = known_scenario();
  study.trial = [&](std::uint64_t seed) {
    const std::lock_guard lock(mutex);
    seen.insert(seed);
    return std::vector<bool>{false, false};
  };
  calibrate({study, study}, {.threads = 2}, {.seed = (std::uint64_t{1} << 53) - 5});
  EXPECT_EQ(seen.size(), 2000U);
  EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 2000U);
  EXPECT_LT(*seen.rbegin(), std::uint64_t{1} << 53);
}

TEST(Calibrate, StopsBetweenRunsAndSaysSo) {
  const std::atomic<bool> stop = true;
  const Calibration seen = calibrate({known_scenario()}, {.stop = &stop});
  EXPECT_FALSE(seen.outcome.complete);
  EXPECT_TRUE(seen.outcome.interrupted);
  EXPECT_EQ(seen.rates[0].trials, 0U);
  EXPECT_EQ(seen.pass(), std::nullopt);
  const auto json = nlohmann::json::parse(calibration_json(seen, provenance()));
  EXPECT_FALSE(json["complete"]);
  EXPECT_TRUE(json["pass"].is_null());
  EXPECT_TRUE(json["rates"][0]["rate"].is_null());
}

TEST(Calibrate, HandsOnWhatGoesWrongInARun) {
  CalibrationStudy study = known_scenario();
  study.trial = [](std::uint64_t) -> std::vector<bool> { throw std::runtime_error("a run"); };
  EXPECT_THROW(calibrate({study}, {.threads = 2}), std::runtime_error);
  study.trial = [](std::uint64_t) { return std::vector<bool>{true}; };
  EXPECT_THROW(calibrate({study}, {.threads = 2}), std::logic_error);
  EXPECT_THROW(calibrate({known_scenario()}, {.backend = "abacus"}), InvalidInput);
}

TEST(CalibrationStudies, StopWhileTheirClosedFormsAreComputed) {
  const std::atomic<bool> stop = true;
  const Session session{.backend = "cpu", .threads = 1, .stop = &stop};
  const std::vector<CalibrationStudy> studies = calibration_studies(session);
  EXPECT_TRUE(studies.empty());
  EXPECT_TRUE(calibrate(studies, session).outcome.interrupted);
}

TEST(CalibrationStudies, TurnOutAsTheyMustInAFewRuns) {
  std::vector<CalibrationStudy> studies = calibration_studies({.backend = "cpu", .threads = 2});
  for (CalibrationStudy& study : studies) study.trials = 6;
  const Calibration seen = calibrate(studies, {.threads = 2}, {.seed = 99});
  std::set<RateKind> kinds;
  for (const CalibrationRate& one : seen.rates) {
    kinds.insert(one.measured);
    EXPECT_EQ(one.trials, 6U);
    EXPECT_FALSE(one.what.empty());
    if (one.measured == RateKind::power) {
      EXPECT_GE(one.count, 5U) << one.what;
    }
    if (one.measured == RateKind::false_alarm || one.measured == RateKind::false_support) {
      EXPECT_LE(one.count, 1U) << one.what;
    }
    if (one.measured == RateKind::coverage) {
      EXPECT_GE(one.count, 3U) << one.what;
    }
  }
  EXPECT_EQ(kinds.size(), 6U);
}

TEST(CalibrationRecord, IsThatOfTheDocument) {
  std::ostringstream text;
  text << std::ifstream(test::source_dir() + "/docs/measured/calibration.md").rdbuf();
  const std::string document = text.str();
  const auto holds = [&](const std::string& part) {
    return document.find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds(calibration_sentence())) << calibration_sentence();
  EXPECT_TRUE(holds(calibration_record.date));
  EXPECT_TRUE(holds(calibration_record.command));
  CalibrationRecord other = calibration_record;
  ++other.true_refuted.count;
  EXPECT_FALSE(holds(calibration_sentence(other)));
}

}  // namespace
}  // namespace headlab
