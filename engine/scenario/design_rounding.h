// SPDX-License-Identifier: Apache-2.0
/// \file Whether the numbers in use can hold the points of a design.
#pragma once

#include <cstddef>

#include "kernels/laws.h"

namespace headlab {

/// A type of numbers and the standard deviations that the mean of a coordinate may lie away from 0
/// in it.
struct DesignPrecision {
  const char* name;
  double max_mean_over_sd;
};

/// Of points that are drawn. Near the mean they are rounded by up to 2^-24 |mean|, which at this
/// distance is 2^-10 of the standard deviation.
inline constexpr DesignPrecision drawn_points = {"points are float32", 0x1p14};

/// Of closed forms, which no standard error hides: 2^-20 of the standard deviation.
inline constexpr DesignPrecision closed_forms = {"closed forms are float64", 0x1p33};

/// Throws ParameterError, with the coordinate and its ratio, where the mean of a coordinate that
/// varies is too far from 0: of normal designs and of each component of a mixture. Other laws are
/// centred at 0, except data files.
void require_precision(const DesignLaw& design, const DesignPrecision& precision);

/// The same for a column of a data file, whose rows are drawn.
void require_column_precision(std::size_t column, double mean, double sd);

}  // namespace headlab
