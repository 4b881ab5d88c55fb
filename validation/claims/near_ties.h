// SPDX-License-Identifier: Apache-2.0
/// \file How wrong the index "overlap" can go: it orders head sets by their noise to leading order
/// exactly, so that what inversions there are come from the finite number of training points.
///
/// Three heads that see one direction each, Gaussian kernel, query x = 0, X ~ N(0, I), noise alone:
/// the error of the mean is s^2-proportional and exact,
///
///     Var(f) = V/3 + (2/9) sum of C over the three pairs,
///
/// with V and C, a function of the pair's cosine, from the exact finite-n theory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/matrices.h"

namespace headlab {

/// Returns n C / s^2 of two heads that see one direction each, as a function of their cosine in
/// [0, 1]; n V / s^2 at 1. Interpolates the exact theory in cos^2, in which C is a power series
/// with positive coefficients, from Chebyshev points. \param n >= 2, training points  \param
/// bandwidth b of the Gaussian kernel  \param nodes >= 2
std::function<double(double)> exact_noise(std::uint64_t n, double bandwidth, int nodes = 10);

/// The largest inversion at one n.
struct NearTies {
  double error_gap = 0;  ///< relative: largest by which errors differ at one index
  double index_gap = 0;  ///< largest by which indices differ at one error
};

/// Finds the largest inversions of "overlap" among head sets, each three heads of dimension 1. Each
/// is compared with the equiangular set that ties with it: a nudge in either direction then makes
/// the index wrong by just less than the gaps reported.
NearTies overlap_near_ties(std::uint64_t n, double bandwidth,
                           const std::vector<Matrices>& head_sets);

}  // namespace headlab
