// SPDX-License-Identifier: Apache-2.0
/// \file How often verdicts were wrong when it was last measured: the worst row of each kind in the
/// table of docs/measured/calibration.md, whose sentence a test compares with this.
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

}  // namespace headlab
