// SPDX-License-Identifier: Apache-2.0
/// \file Upper bounds on the diameter of tokens, D = max |x_i - x_j|: bounds, not values.
///
/// |.| are spectral norms, tau(A) = max_ij |A_i - A_j|_1/2 Dobrushin's coefficient. For any number
/// of tokens:
///
///     D(sum_h A_h X V_h) <= sum_h tau(A_h) |V_h| D(X)
///     tau(A) <= tanh(|M| D^2/(4t)), A the softmax of X M X^T/t; sharp for two antipodal tokens
///
/// Softmax bounds need no mask, skip, norm or MLP (a causal mask breaks them: its first row has one
/// key). Functions throw InvalidInput where a number is negative, not finite or out of its range.
#pragma once

#include <span>
#include <vector>

namespace headlab {

/// Spectral norms of one head's maps, |M_h| and |V_h|.
struct HeadNorms {
  double query_key = 1;
  double value = 1;
};

/// Computes c = |b| sum_h |V_h| |M_h|/(4t): attention without skip collapses doubly exponentially
/// where c D_0^2 < 1. Of layers that differ, the largest c counts.
double contraction_constant(std::span<const HeadNorms> heads, double branch, double temperature);

/// Computes upper bounds of log D_l, l = 0..L, of attention without skip and memory:
///
///     D_l <= c^(-1/2) (c^(1/2) D_0)^(3^l)
///
/// -infinity for 0. \param constant c
std::vector<double> log_diameter_upper_bounds(double constant, double diameter, int layers);

/// One head without skip, with a memory of scores.
struct RememberingHead {
  HeadNorms norms;
  double branch = 1;
  double temperature = 1;
  double memory = 0;  ///< a in [0, 1]
};
/// Computes upper bounds of log D_l, l = 0..L, layer by layer:
///
///     D_l <= |b| |V| tanh(B_l/4) D_(l-1)
///     B_1 = |M| D_0^2/t,  B_l = a B_(l-1) + (1-a) |M| D_(l-1)^2/t
///
/// For a > 0 it falls at least linearly where |b| |V| tanh(B_1/4) < 1. \return -infinity for 0
std::vector<double> log_diameter_upper_bounds(const RememberingHead& head, double diameter,
                                              int layers);

}  // namespace headlab
