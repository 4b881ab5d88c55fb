// SPDX-License-Identifier: Apache-2.0
/// \file From random integers to uniforms, normals and choices: float32 of correctly rounded
/// operations and selects only, so the same bits on every backend (see kernels/math.h). None
/// rejects, so each takes a fixed number of integers.
#pragma once

#include <cstdint>

#include "kernels/hd.h"
#include "kernels/math.h"

namespace headlab {

/// Uniform on (0, 1]: (word + 1/2) 2^-32, rounded once; from 2^-33 to 1, full precision near 0.
/// One rounding: both 16-bit halves are exact floats, and so is (low + 1/2) 2^-32 (17 bits); only
/// the last operation rounds.
HEADLAB_HD float uniform_open(std::uint32_t word) {
  const float high = static_cast<float>(static_cast<std::int32_t>(word >> 16));
  const float low = static_cast<float>(static_cast<std::int32_t>(word & 0xffffu));
  return math::fused(high, 0x1p-16f, math::fused(low, 0x1p-32f, 0x1p-33f));
}

/// Uniform on (-1, 1): (2 k + 1) 2^-24 with k in [-2^23, 2^23) the word's first 24 bits, exact.
/// From -1 + 2^-24 to 1 - 2^-24, never 0; the complement of a word gives minus its number.
HEADLAB_HD float uniform_symmetric(std::uint32_t word) {
  const std::int32_t k = static_cast<std::int32_t>(word ^ 0x80000000u) >> 8;
  return static_cast<float>(2 * k + 1) * 0x1p-24f;
}

/// Two independent N(0, 1).
struct NormalPair {
  float first, second;
};

/// R cos(A) and R sin(A) with R = sqrt(-2 ln((a + 1/2) 2^-32)) and A = 2 pi b 2^-32.
/// Source: Box, Muller, "A note on the generation of random normal deviates", 1958.
///
/// Each to a relative error of 5.4 2^-24 everywhere (R 2.5, sine or cosine 1.9, product 1), so to
/// an absolute one of 2.2e-6: near u = 1 the logarithm is taken of 1 - (1 - u), and the quarter
/// turn comes from b's first bits, so that the angle left is exact before its one rounding. R is
/// between 2^-16 and 6.764; a coordinate is 0 only where b is a whole number of quarter turns.
HEADLAB_HD NormalPair normal_pair(std::uint32_t a, std::uint32_t b) {
  math::detail::Logarithmand u = math::detail::split(uniform_open(a));
  u.fraction = u.exponent == 0.0f ? -uniform_open(~a) : u.fraction;
  const float radius = math::sqrt(-2.0f * math::detail::log_of(u));

  const std::uint32_t quarter = (b + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(b - (quarter << 30));
  const float r = static_cast<float>(rest) * 0x1p-32f;
  const float sine = radius * math::detail::sine_of_eighth(r);
  const float cosine = radius * math::detail::cosine_of_eighth(r);
  const bool odd = (quarter & 1u) != 0;
  const std::uint32_t cosine_sign = ((quarter + 1u) & 2u) << 30;
  const std::uint32_t sine_sign = (quarter & 2u) << 30;
  return {math::from_bits(math::to_bits(odd ? sine : cosine) ^ cosine_sign),
          math::from_bits(math::to_bits(odd ? cosine : sine) ^ sine_sign)};
}

/// An integer in [0, size), size >= 1: floor(word size / 2^32). Each has probability 1 / size to
/// within 2^-32.
HEADLAB_HD std::uint32_t choose(std::uint32_t word, std::uint32_t size) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * size) >> 32);
}

/// The smallest c with U < cumulative[c], U = the word's first 24 bits / 2^24 in [0, 1), exact.
/// cumulative [count]: ascending, the last 1, which is not read: c is always in [0, count). A class
/// of probability 0 is never chosen.
HEADLAB_HD int categorical(std::uint32_t word, const float* cumulative, int count) {
  const float uniform = static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
  int c = 0;
  for (int i = 0; i < count - 1; ++i) c += uniform >= cumulative[i] ? 1 : 0;
  return c;
}

}  // namespace headlab
