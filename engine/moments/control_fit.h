// SPDX-License-Identifier: Apache-2.0
/// \file Coefficients of control variates, from the replicates of a pilot.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace headlab {

/// Coefficients are used where they divide the variance by more than this.
inline constexpr double min_control_gain = 1.1;

/// Fits y on `controls` [C][N] of mean 0, of which some may not be used: coefficients [C], 0 for
/// these. A control is not used where its kurtosis is above its `max_kurtosis` [C]. `choices` lists
/// sets of controls, by number; the first set that proves its worth is taken: least squares on
/// either half of the replicates has to divide the variance on the other by more than
/// min_control_gain, by a one-sided 99 % bound. All 0 where none does. What is not used may be
/// infinite.
std::vector<double> fit_controls(std::span<const double> y,
                                 const std::vector<std::vector<double>>& controls,
                                 std::span<const double> max_kurtosis, double max_rest_kurtosis,
                                 std::span<const std::vector<std::size_t>> choices);

/// Standard deviation and skewness of numbers; 0 where they do not vary.
struct Spread {
  double sd = 0;
  double skewness = 0;
};
Spread spread_of(std::span<const double> numbers);

}  // namespace headlab
