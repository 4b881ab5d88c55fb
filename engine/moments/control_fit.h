// SPDX-License-Identifier: Apache-2.0
/// \file Coefficients of control variates, from the replicates of a pilot.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace headlab {

/// Coefficients are used where they divide the variance by more than this.
inline constexpr double min_control_gain = 1.1;

/// One control in the replicates of a pilot, less its mean.
struct ControlSample {
  std::vector<double> numbers;  ///< [N]
  double scale = 0;             ///< size of what rounding is relative to
  double error = 0;             ///< bound of the error of its mean
  double max_kurtosis = 0;      ///< a wilder one is not used
};

/// Fits y on controls of mean 0, of which some may not be used: coefficients [C], 0 for these. A
/// control is not used where it is wilder than it may be, where its standard deviation is below
/// 1e-5 of its scale, so that it may be rounding alone, or below 1e3 errors of its mean. `choices`
/// lists sets of controls, by number; the first set that proves its worth is taken: least squares
/// on either half of the replicates has to divide the variance on the other by more than
/// min_control_gain, by a one-sided 99 % bound, and what is subtracted to have mean 0 to 3.5
/// standard errors, which it has not where rare replicates make much of it. All 0 where none does.
/// What is not used may be infinite.
std::vector<double> fit_controls(std::span<const double> y, std::span<const ControlSample> controls,
                                 double max_rest_kurtosis,
                                 std::span<const std::vector<std::size_t>> choices);

/// Standard deviation and skewness of numbers; 0 where they do not vary.
struct Spread {
  double sd = 0;
  double skewness = 0;
};
Spread spread_of(std::span<const double> numbers);

}  // namespace headlab
