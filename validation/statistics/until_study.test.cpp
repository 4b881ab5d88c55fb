// SPDX-License-Identifier: Apache-2.0
// Coverage of intervals of runs that end by their standard error; the rates of many studies stand
// in docs/measured/precision.md.
#include "validation/statistics/testing/until_study.h"

#include <cmath>

#include <gtest/gtest.h>

namespace headlab {
namespace {

/// z of a count of successes in `studies`.
double z_of_count(std::uint64_t count, std::uint64_t studies, double probability) {
  const auto n = static_cast<double>(studies);
  return (static_cast<double>(count) - n * probability) /
         std::sqrt(n * probability * (1 - probability));
}

TEST(Until, IntervalsAtTheLastLookCoverTheTruth) {
  for (const UntilSetting& setting : until_settings(3000)) {
    const UntilRates rates = until_rates(setting, 600, 11, 2);
    SCOPED_TRACE(setting.name);
    // Means of lognormal numbers are not normal yet at 3000 replicates: few of them carry the mean,
    // so that runs go on to several times as many.
    const bool heavy = setting.name == "lognormal";
    const double nominal = heavy ? 0.90 : 0.95;
    EXPECT_GT(z_of_count(rates.covered, rates.studies, nominal), -4);
    EXPECT_GE(rates.looks, 2);
    EXPECT_LT(rates.looks, 5);
    EXPECT_GT(rates.excess, -0.1);
    EXPECT_LT(rates.excess, heavy ? 8 : 0.4);
  }
}

TEST(Until, TheStudySeesIntervalsThatCoverTooLittle) {
  // The control: a truth one standard error off.
  UntilSetting setting = until_settings(3000).front();
  setting.truth += 1 / std::sqrt(setting.least);
  const UntilRates rates = until_rates(setting, 600, 11, 2);
  EXPECT_LT(z_of_count(rates.covered, rates.studies, 0.95), -4);
}

TEST(Until, RatesAreThoseOfAnyNumberOfThreads) {
  const UntilSetting setting = until_settings(2000)[2];
  const UntilRates one = until_rates(setting, 20, 3, 1);
  const UntilRates two = until_rates(setting, 20, 3, 2);
  EXPECT_EQ(one.covered, two.covered);
  EXPECT_EQ(one.looks, two.looks);
  EXPECT_EQ(one.excess, two.excess);
}

}  // namespace
}  // namespace headlab
