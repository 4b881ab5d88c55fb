// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/calibration_record.h"

#include <cstdio>

#include "validation/verdicts/calibration.h"

namespace headlab {
namespace {

std::string of(const CalibrationCount& counted) {
  return std::to_string(counted.count) + " of " + std::to_string(counted.trials);
}

std::string percentage(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

Interval interval(const CalibrationCount& counted) {
  return clopper_pearson(counted.count, counted.trials, calibration_confidence);
}

}  // namespace

std::string calibration_sentence(const CalibrationRecord& record) {
  return "in the hardest cases " + of(record.true_refuted) + " true claims were refuted (at most " +
         percentage(interval(record.true_refuted).high) + "), " + of(record.false_supported) +
         " claims false by just their margin supported (at most " +
         percentage(interval(record.false_supported).high) + "), " + of(record.false_refuted) +
         " planted false ones refuted (at least " + percentage(interval(record.false_refuted).low) +
         ")";
}

}  // namespace headlab
