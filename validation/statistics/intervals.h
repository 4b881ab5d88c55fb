// SPDX-License-Identifier: Apache-2.0
/// \file The distributions behind intervals and tests.
#pragma once

#include <cstdint>

namespace headlab {

/// Returns the t with P(T <= t) = probability for Student's t on `df` > 0 degrees of freedom.
/// Throws std::invalid_argument for a probability outside (0, 1).
double student_quantile(double probability, double df);

/// Returns P(T > t) for Student's t on `df` > 0 degrees of freedom; 1 at -inf, 0 at +inf. A t that
/// is not a number gives 1: no evidence.
double student_tail(double t, double df);

struct Interval {
  double low = 0;
  double high = 1;
};

/// Computes the Clopper-Pearson interval of a probability, which covers it with at least the given
/// confidence: ends are quantiles of beta distributions (Clopper and Pearson 1934). Throws
/// std::invalid_argument unless successes <= trials, trials > 0 and 0 < confidence < 1.
Interval clopper_pearson(std::uint64_t successes, std::uint64_t trials, double confidence);

/// The ends of the confidence interval of a standard deviation, as multiples of its estimate on
/// `df` > 0 degrees of freedom from normal numbers: sqrt(df / q) with q quantiles of chi-squared.
/// Throws std::invalid_argument for a confidence outside (0, 1).
Interval deviation_interval(double df, double confidence);

}  // namespace headlab
