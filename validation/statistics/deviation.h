// SPDX-License-Identifier: Apache-2.0
/// \file How far off an estimated standard deviation or standard error may be.
#pragma once

#include "validation/statistics/intervals.h"

namespace headlab {

/// The ends of the confidence interval of a standard deviation, as multiples of its estimate on
/// `df` > 0 degrees of freedom from normal numbers: sqrt(df / q) with q quantiles of chi-squared.
/// Throws std::invalid_argument for a confidence outside (0, 1).
Interval deviation_interval(double df, double confidence);

}  // namespace headlab
