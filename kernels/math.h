// SPDX-License-Identifier: Apache-2.0
/// \file Elementary functions that give the same bits on every backend.
///
/// The float ones are our own, of +, -, *, fused multiply-add, sqrt, integer operations and selects
/// only: each is one correctly rounded operation on hosts and devices alike, so a vectorised loop,
/// a scalar loop and a GPU thread agree to the bit. They have no data-dependent branch or loop.
/// Every a * b + c is written `fused`, so that no compiler is left a contraction to choose. The
/// double ones forward to the standard library and are as accurate as it is.
///
/// Coefficients: weighted minimax fits of the relative error, computed for this file with mpmath
/// (40 digits) and a linear programme over Chebyshev nodes; rounded to float one by one from the
/// lowest order up, the others refitted after each. An ulp is the spacing of floats at the exact
/// value; the errors named are the maxima over every float in the range. NaN in gives NaN out.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/hd.h"

namespace headlab::math {

/// The bits of a float, and back.
HEADLAB_HD std::uint32_t to_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
HEADLAB_HD float from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

/// a b + c with one rounding.
HEADLAB_HD float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
HEADLAB_HD double fused(double a, double b, double c) {
  return std::fma(a, b, c);
}

/// The larger of two numbers; NaN if `a` is NaN, but `a` if only `b` is. So in max(x, bound) and
/// min(x, bound) a NaN in x is never swallowed, in one instruction on x86 (maxps keeps one side).
HEADLAB_HD float max(float a, float b) {
  return a < b ? b : a;
}
HEADLAB_HD double max(double a, double b) {
  return a < b ? b : a;
}

/// The smaller of two numbers; NaN as for `max`.
HEADLAB_HD float min(float a, float b) {
  return b < a ? b : a;
}
HEADLAB_HD double min(double a, double b) {
  return b < a ? b : a;
}

/// |x|, exact.
HEADLAB_HD float abs(float x) {
  return from_bits(to_bits(x) & 0x7fffffffu);
}
HEADLAB_HD double abs(double x) {
  return std::fabs(x);
}

/// sqrt(x), correctly rounded; NaN for x < 0.
HEADLAB_HD float sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}
HEADLAB_HD double sqrt(double x) {
  return std::sqrt(x);
}

/// The largest whole number up to x, exact.
HEADLAB_HD float floor(float x) {
  return __builtin_floorf(x);
}
HEADLAB_HD double floor(double x) {
  return std::floor(x);
}

namespace detail {

/// x = 2^exponent (1 + fraction) with 1 + fraction in [2/3, 4/3), exact, for normal x > 0.
struct Logarithmand {
  float exponent, fraction;
};
HEADLAB_HD Logarithmand split(float x) {
  constexpr std::uint32_t two_thirds = 0x3f2aaaabu;
  const std::uint32_t distance = to_bits(x) - two_thirds;
  const float significand = from_bits((distance & 0x007fffffu) + two_thirds);
  return {static_cast<float>(static_cast<std::int32_t>(distance) >> 23), significand - 1.0f};
}

/// exponent ln 2 + log(1 + f) by log(1 + f) = f + f^2 Q(f), Q of degree 8, relative error of the
/// fit 2^-27.7. The float nearest to ln 2 has relative error 2^-28.4, so it needs no second part.
HEADLAB_HD float log_of(Logarithmand x) {
  const float f = x.fraction;
  float q = -0x1.07c964p-3f;
  q = fused(q, f, 0x1.1e678cp-3f);
  q = fused(q, f, -0x1.f332a6p-4f);
  q = fused(q, f, 0x1.1ed662p-3f);
  q = fused(q, f, -0x1.559c46p-3f);
  q = fused(q, f, 0x1.99d044p-3f);
  q = fused(q, f, -0x1.fffefcp-3f);
  q = fused(q, f, 0x1.555506p-2f);
  q = fused(q, f, -0.5f);
  return fused(x.exponent, 0x1.62e430p-1f, fused(f * f, q, f));
}

/// e^x = 2 half (1 + m), half = 2^(n - 1), n = round(x / ln 2), m = e^r - 1, r = x - n ln 2, for x
/// in
/// [-86.98, 88.7229]. m = r + r^2 Q(r), Q of degree 4, relative error of the fit 2^-26.1.
struct Exponential {
  float half, m;
};
HEADLAB_HD Exponential exponential(float x) {
  // Adding 1.5 2^23 + 126 rounds to an integer and leaves the exponent field of `half` in the low
  // bits. The first part of ln 2 has 16 bits, so that n times it is exact.
  constexpr float shift = 12582912.0f + 126.0f;
  const float shifted = fused(x, 0x1.715476p+0f, shift);
  const float n = shifted - shift;
  const float r = fused(n, -0x1.7f7d1cp-20f, fused(n, -0x1.62e4p-1f, x));
  float q = 0x1.6b9c74p-10f;
  q = fused(q, r, 0x1.122546p-7f);
  q = fused(q, r, 0x1.5556f2p-5f);
  q = fused(q, r, 0x1.5554b4p-3f);
  q = fused(q, r, 0x1.fffffep-2f);
  return {from_bits(to_bits(shifted) << 23), fused(r * r, q, r)};
}
inline constexpr float exp_zero_below = -86.98f;             // about ln 2^-125.5
inline constexpr float exp_infinite_above = 0x1.62e42ep+6f;  // the last float below ln 2^128

/// sin(2 pi r) = r (2 pi + r^2 S(r^2)) for |r| <= 1/8 turn: relative error of the fit 2^-28.1. 2 pi
/// is the nearest float and a remainder that the fit has put into S's first coefficient.
HEADLAB_HD float sine_of_eighth(float r) {
  const float z = r * r;
  float s = -0x1.2da156p+6f;
  s = fused(s, z, 0x1.465eeap+6f);
  s = fused(s, z, -0x1.4abbbap+5f);
  s = fused(s, z, -0x1.a32beap-23f);
  return fused(r, 0x1.921fb6p+2f, r * s);
}

/// cos(2 pi r) = 1 + r^2 C(r^2) for |r| <= 1/8 turn: relative error of the fit 2^-31. C < 0, so the
/// result is at most 1.
HEADLAB_HD float cosine_of_eighth(float r) {
  const float z = r * r;
  float c = 0x1.d4f7eep+5f;
  c = fused(c, z, -0x1.55b2b6p+6f);
  c = fused(c, z, 0x1.03c1b0p+6f);
  c = fused(c, z, -0x1.3bd3ccp+4f);
  return fused(c, z, 1.0f);
}

/// t = whole turns + quarter / 4 + r with |r| <= 1/8, exact; the last two bits of `quarter` count.
struct Turns {
  std::uint32_t quarter;
  float r;
};
HEADLAB_HD Turns reduce(float t) {
  // From 2^23 on every float is a whole number of turns; t - t there keeps inf and NaN a NaN.
  constexpr float to_whole = 8388608.0f;
  constexpr float shift = 12582912.0f;
  const float nearest = (t + to_whole) - to_whole;
  const float s = t >= to_whole ? t - t : t - nearest;
  const float shifted = fused(4.0f, s, shift);
  return {to_bits(shifted), fused(-0.25f, shifted - shift, s)};
}

inline constexpr double two_pi = 6.283185307179586;

}  // namespace detail

/// ln x for x in [0, inf], 0.94 ulp: exponent ln 2 + log(1 + f), see detail::log_of.
/// ln 0 = -inf, ln inf = inf, NaN for x < 0. Subnormal x are exact, not flushed.
HEADLAB_HD float log(float x) {
  const bool subnormal = x < 0x1p-126f;
  const float normal = subnormal ? x * 0x1p23f : x;
  detail::Logarithmand parts = detail::split(normal);
  parts.exponent = subnormal ? parts.exponent - 23.0f : parts.exponent;
  float y = detail::log_of(parts);
  y = x == 0.0f ? -__builtin_huge_valf() : y;
  y = x < __builtin_huge_valf() ? y : x;
  return x < 0.0f ? __builtin_nanf("") : y;
}
HEADLAB_HD double log(double x) {
  return std::log(x);
}

/// e^x, 1.33 ulp: see detail::exponential. Flushed to 0 for x < -86.98 (below about 2^-125.5, so no
/// result is subnormal); inf for x > 88.72283 (above the largest float).
HEADLAB_HD float exp(float x) {
  const detail::Exponential e = detail::exponential(x);
  const float half = fused(e.half, e.m, e.half);
  float y = half + half;
  y = x < detail::exp_zero_below ? 0.0f : y;
  return x > detail::exp_infinite_above ? __builtin_huge_valf() : y;
}
HEADLAB_HD double exp(double x) {
  return std::exp(x);
}

/// e^x - 1, 1.53 ulp: 2 (half m + (half - 1/2)), see detail::exponential. -1 for x < -20; inf for
/// x > 88.72283. The sign of zero is not kept.
HEADLAB_HD float expm1(float x) {
  const detail::Exponential e = detail::exponential(x);
  const float half = fused(e.half, e.m, e.half - 0.5f);
  float y = half + half;
  y = x < -20.0f ? -1.0f : y;
  return x > detail::exp_infinite_above ? __builtin_huge_valf() : y;
}
HEADLAB_HD double expm1(double x) {
  return std::expm1(x);
}

/// cos(2 pi t), 0.88 ulp, in [-1, 1], for every finite t: the reduction to an eighth of a turn is
/// exact. NaN for infinite t.
HEADLAB_HD float cos_turns(float t) {
  const detail::Turns turns = detail::reduce(abs(t));
  const float sine = detail::sine_of_eighth(turns.r);
  const float cosine = detail::cosine_of_eighth(turns.r);
  const float y = (turns.quarter & 1u) != 0 ? sine : cosine;
  return from_bits(to_bits(y) ^ (((turns.quarter + 1u) & 2u) << 30));
}
HEADLAB_HD double cos_turns(double t) {
  return std::cos(detail::two_pi * (t - std::round(t)));
}

/// sin(2 pi t), 0.88 ulp (1.5 where it is subnormal), in [-1, 1], for every finite t, as
/// `cos_turns`.
HEADLAB_HD float sin_turns(float t) {
  const detail::Turns turns = detail::reduce(abs(t));
  const float sine = detail::sine_of_eighth(turns.r);
  const float cosine = detail::cosine_of_eighth(turns.r);
  const float y = (turns.quarter & 1u) != 0 ? cosine : sine;
  return from_bits(to_bits(y) ^ ((turns.quarter & 2u) << 30) ^ (to_bits(t) & 0x80000000u));
}
HEADLAB_HD double sin_turns(double t) {
  return std::sin(detail::two_pi * (t - std::round(t)));
}

}  // namespace headlab::math
