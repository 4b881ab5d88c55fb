// SPDX-License-Identifier: Apache-2.0
/// \file Switches and scalar formulas of a stack, which the definition and a device share.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/hd.h"

namespace headlab {

/// What weights are made of.
enum class AttentionKernel {
  softmax,             ///< logits Z M_h Z^T / t
  uniform,             ///< equal weights of all keys allowed
  independent_logits,  ///< logits N(0, sd^2), drawn
  fixed                ///< given matrices
};

enum class NormKind { none, rms, layer };
enum class NormPlace { pre, post };

namespace stack {

inline constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// Of softmax: below this exponent w logits are infinitesimal, and above this difference to a
/// row's mean logit exponentials may overflow.
inline constexpr double min_exponent = -600;
inline constexpr double max_spread = 600;

/// What a step adds to the relative errors, and the relative size of a token that is rounding
/// alone.
inline constexpr double step_error = 1e-13;
inline constexpr double token_rounding = 16 * 0x1p-52;

/// Layers of a stack, metrics of more tokens than which are undefined, and samples of a product.
inline constexpr int max_layers = 4096;
inline constexpr int max_tokens_of_diameter = 1024;
inline constexpr int max_tokens_of_dobrushin = 256;
inline constexpr int max_samples = 20;

/// Numerator over denominator; 0 where both are.
HEADLAB_HD double relative(double numerator, double denominator) {
  return numerator == 0 ? 0 : numerator / denominator;
}

/// A size in units of a scale that may have underflowed.
HEADLAB_HD double in_units_of(double scale, double size) {
  return size == 0 ? 0 : size / scale;
}

/// Factors of a and b in f e^p a + e^q b = e^exponent (first a + second b), at the larger exponent.
struct Sum {
  double exponent, first, second;
};
/// \param p, q -infinity where the term is 0
HEADLAB_HD Sum sum_at_larger(double f, double p, double q) {
  const double exponent = p < q ? q : p;
  const double of_first = p == minus_infinity ? 0 : std::exp(p - exponent);
  const double of_second = q == minus_infinity ? 0 : std::exp(q - exponent);
  return {exponent, f * of_first, of_second};
}

/// A token m + e^sigma r under a norm is, but for a factor, m + e^sigma (of_residual r + of_mean
/// m): of_residual = 1 + e^sigma of_mean.
struct NormFactors {
  double of_residual, of_mean;
};
/// True where the excess of its squared length over the mean's says enough about a token: else it
/// is small, and its squared length would lose digits as a difference.
HEADLAB_HD bool knows_length(double scale, double excess) {
  return scale * excess > -0.99;
}
/// From 1 + e^sigma excess = (|token|^2 + d epsilon)/(|m|^2 + d epsilon).
HEADLAB_HD NormFactors factors_of_excess(double scale, double excess) {
  const double root = std::sqrt(1 + scale * excess);
  return {1 / root, -excess / (root * (1 + root))};
}

/// (relu(u + e^sigma v) - relu(u)) / e^sigma.
HEADLAB_HD double relu_difference(double u, double v, double scale) {
  const double moved = u + scale * v;
  if (u == 0) return v > 0 ? v : 0;
  if (u < 0 && moved <= 0) return 0;
  if (u > 0 && moved > 0) return v;
  return ((moved > 0 ? moved : 0) - (u > 0 ? u : 0)) / scale;
}

/// |R|^2/|X|^2 of n tokens.
HEADLAB_HD double residual_share(double n, double mean_squared, double exponent, double squared) {
  const double ratio = std::log(n * mean_squared) - 2 * exponent - std::log(squared);
  return 1 / (1 + std::exp(ratio));
}

/// The nearer of two sums to a target; the lower of two as near.
HEADLAB_HD double nearer_sum(double a, double b, double target) {
  const double of_a = std::fabs(a - target);
  const double of_b = std::fabs(b - target);
  return of_b < of_a || (of_b == of_a && b < a) ? b : a;
}

}  // namespace stack
}  // namespace headlab
