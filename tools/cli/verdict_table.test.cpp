// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/verdict_table.h"

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

Calibration two_rates() {
  Calibration calibration{
      .machine = Machine{.backend = "cpu", .device = "a processor", .threads = 2},
      .outcome = {.seconds = 12}};
  calibration.rates = {{.measured = RateKind::false_alarm,
                        .what = "a claim",
                        .effect = "true",
                        .count = 17,
                        .trials = 2000,
                        .interval = clopper_pearson(17, 2000, 0.975)},
                       {.measured = RateKind::control,
                        .what = "MSE",
                        .effect = "MCSE 30 % too small",
                        .count = 1650,
                        .trials = 2000,
                        .interval = clopper_pearson(1650, 2000, 0.975)}};
  return calibration;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CalibrationTable, ShowsCountsIntervalsAndWhatIsRequired) {
  for (const std::string& text :
       {calibration_table(two_rates()), calibration_report(two_rates())}) {
    EXPECT_TRUE(holds(text, "17 of 2000")) << text;
    EXPECT_TRUE(holds(text, "0.85 %")) << text;
    EXPECT_TRUE(holds(text, "low end at most 1 %")) << text;
    EXPECT_TRUE(holds(text, "yes: caught")) << text;
    EXPECT_TRUE(holds(text, "all pass")) << text;
    EXPECT_FALSE(holds(text, "NO")) << text;
  }
  EXPECT_TRUE(
      holds(calibration_report(two_rates()), "| false alarm | a claim | true | 17 of 2000"));
}

TEST(CalibrationTable, SaysWhatFailsAndWhatWasNotReached) {
  Calibration calibration = two_rates();
  calibration.rates[0].count = 60;
  calibration.rates[0].interval = clopper_pearson(60, 2000, 0.975);
  calibration.rates[1].count = 1900;
  calibration.rates[1].interval = clopper_pearson(1900, 2000, 0.975);
  const std::string text = calibration_table(calibration);
  EXPECT_TRUE(holds(text, "NOT ALL PASS")) << text;
  EXPECT_TRUE(holds(text, "NO: not caught")) << text;
  calibration.rates[0] = {.what = "a claim"};
  EXPECT_TRUE(holds(calibration_table(calibration), "not reached"));
}

}  // namespace
}  // namespace headlab::tools
