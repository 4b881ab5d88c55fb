// SPDX-License-Identifier: Apache-2.0
/// \file Bounds that tests share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace headlab {

constexpr double eps = std::numeric_limits<double>::epsilon();
/// Half the spacing of floats in [1, 2): the largest relative error of one rounding.
constexpr double u32 = 0x1p-24;

/// Bound on |z| of a mean over N draws, z from the known variance of what is averaged: P = 7e-6.
constexpr double z_bound = 4.5;
/// The same for many tests at once: P = 2e-9 each.
constexpr double strict_z_bound = 6;

/// sqrt(N) sup |F_N - F|, of which P(> t) <= 2 exp(-2 t^2) (Dvoretzky, Kiefer, Wolfowitz 1956 with
/// Massart's constant, 1990).
template <class Number, class Distribution>
double kolmogorov(std::vector<Number> sample, const Distribution& distribution) {
  std::ranges::sort(sample);
  const auto n = static_cast<double>(sample.size());
  double distance = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double f = distribution(static_cast<double>(sample[i])), below = static_cast<double>(i);
    const double here = std::max(f - below / n, (below + 1) / n - f);
    if (!(here <= distance)) distance = here;
  }
  return std::sqrt(n) * distance;
}

}  // namespace headlab
