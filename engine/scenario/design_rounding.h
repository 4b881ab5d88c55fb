// SPDX-License-Identifier: Apache-2.0
/// \file Whether float32 can hold the points of a design.
#pragma once

#include "kernels/laws.h"

namespace headlab {

/// Standard deviations that the mean of a coordinate may lie away from 0. Points are float32: near
/// the mean they are rounded by up to 2^-24 |mean|, which at this distance is 2^-10 of the standard
/// deviation.
inline constexpr double max_mean_over_sd = 1 << 14;

/// Throws ParameterError, with the coordinate and its ratio, where the mean of a coordinate that
/// varies exceeds max_mean_over_sd standard deviations: of normal designs, of each component of a
/// mixture, and of the columns of a data file. Other laws are centred at 0.
void require_float32_design(const DesignLaw& design);

}  // namespace headlab
