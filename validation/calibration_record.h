// SPDX-License-Identifier: Apache-2.0
/// \file How often verdicts were wrong when it was last measured. docs/calibration.md holds the
/// table that these numbers are the sums of, and a test compares the two.
#pragma once

#include <cstdint>
#include <string>

namespace headlab {

/// So often in so many runs.
struct CalibrationCount {
  std::uint64_t count;
  std::uint64_t trials;
};

struct CalibrationRecord {
  CalibrationCount true_refuted;     ///< true claims, at the hardest margin, that were refuted
  CalibrationCount false_supported;  ///< claims false by exactly their margin that were supported
  CalibrationCount false_refuted;    ///< planted false claims that were refuted
  const char* date;
  const char* command;
};

inline constexpr CalibrationRecord calibration_record = {.true_refuted = {39, 12000},
                                                         .false_supported = {42, 6000},
                                                         .false_refuted = {8000, 8000},
                                                         .date = "2026-11-21",
                                                         .command = "headlab validate --calibrate"};

/// The record in one sentence, each rate with the end of its 95 % Clopper-Pearson interval that
/// speaks against the program.
std::string calibration_sentence(const CalibrationRecord& record = calibration_record);

}  // namespace headlab
