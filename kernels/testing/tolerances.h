// SPDX-License-Identifier: Apache-2.0
/// \file Bounds that tests share.
#pragma once

#include <limits>

namespace headlab {

constexpr double eps = std::numeric_limits<double>::epsilon();
/// Half the spacing of floats in [1, 2): the largest relative error of one rounding.
constexpr double u32 = 0x1p-24;

/// Bound on |z| of a mean over N draws, z from the known variance of what is averaged: P = 7e-6.
constexpr double z_bound = 4.5;
/// The same for many tests at once: P = 2e-9 each.
constexpr double strict_z_bound = 6;

}  // namespace headlab
