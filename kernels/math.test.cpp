// SPDX-License-Identifier: Apache-2.0
#include "kernels/math.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr double two_pi = 6.283185307179586;

/// Spacing of floats at y (at a power of two the finer one is below, this is the one above).
double ulp(double y) {
  int exponent = 0;
  std::frexp(std::fabs(y), &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Sweep {
  bool within = true;
  double worst = 0;
  float at = 0;
};

/// Compares f with `exact` at every `stride`-th float x in [low, high]. NaN is not within.
template <class Function, class Exact>
Sweep sweep(Function f, Exact exact, float low, float high, double bound_in_ulp,
            std::uint32_t stride = 1021) {
  Sweep result;
  // A prime stride visits every exponent and all endings of the significand.
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += stride) {
    const float x = math::from_bits(static_cast<std::uint32_t>(bits));
    if (!(x >= low && x <= high)) continue;
    const double y = exact(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(f(x)) - y) / ulp(y);
    if (!(error <= bound_in_ulp)) result.within = false;
    if (!(error <= result.worst)) {
      result.worst = error;
      result.at = x;
    }
  }
  return result;
}

#define EXPECT_WITHIN(sweep_result)                                                      \
  do {                                                                                   \
    const Sweep r = sweep_result;                                                        \
    EXPECT_TRUE(r.within) << "error " << r.worst << " ulp at " << std::hexfloat << r.at; \
  } while (false)

/// cos and sin of t turns in double, folded to an eighth so that they are accurate at their zeros.
double exact_cosine(double t) {
  double a = std::fabs(t - std::round(t));
  if (a <= 0.125) return std::cos(two_pi * a);
  if (a <= 0.375) return std::sin(two_pi * (0.25 - a));
  return -std::cos(two_pi * (0.5 - a));
}
double exact_sine(double t) {
  const double s = t - std::round(t);
  const double a = std::fabs(s);
  const double y = a <= 0.125   ? std::sin(two_pi * a)
                   : a <= 0.375 ? std::cos(two_pi * (0.25 - a))
                                : std::sin(two_pi * (0.5 - a));
  return s < 0 ? -y : y;
}

const auto own_log = [](float x) { return math::log(x); };
const auto own_exp = [](float x) { return math::exp(x); };
const auto own_expm1 = [](float x) { return math::expm1(x); };
const auto own_cosine = [](float x) { return math::cos_turns(x); };
const auto own_sine = [](float x) { return math::sin_turns(x); };
const auto exact_log = [](double x) { return std::log(x); };
const auto exact_exp = [](double x) { return std::exp(x); };
const auto exact_expm1 = [](double x) { return std::expm1(x); };

// The bounds are those of the docstrings, which come from all 2^32 floats.
constexpr double log_bound = 0.94, exp_bound = 1.33, expm1_bound = 1.53, turns_bound = 0.88;
constexpr float largest = std::numeric_limits<float>::max();
constexpr float smallest = std::numeric_limits<float>::denorm_min();

TEST(Math, LogIsWithinItsBound) {
  EXPECT_WITHIN(sweep(own_log, exact_log, smallest, largest, log_bound));
  // Every float of a stretch around 1, where the result is small.
  Sweep near_one;
  for (std::uint32_t bits = 0x3f7f0000u; bits < 0x3f808000u; ++bits) {
    const float x = math::from_bits(bits);
    const double y = std::log(static_cast<double>(x));
    if (!(std::fabs(math::log(x) - y) <= log_bound * ulp(y))) near_one.within = false;
  }
  EXPECT_TRUE(near_one.within);
}

TEST(Math, LogAtTheEdges) {
  EXPECT_EQ(math::log(0.0f), -infinity);
  EXPECT_EQ(math::log(-0.0f), -infinity);
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_EQ(math::log(infinity), infinity);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  EXPECT_TRUE(std::isnan(math::log(-infinity)));
  EXPECT_TRUE(std::isnan(math::log(nan)));
}

TEST(Math, ExpIsWithinItsBound) {
  EXPECT_WITHIN(sweep(own_exp, exact_exp, -86.98f, 0x1.62e42ep+6f, exp_bound));
}

TEST(Math, ExpFlushesBelowAndIsInfiniteAbove) {
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  for (const float x :
       {std::nextafter(-86.98f, -100.0f), -87.5f, -100.0f, -1e10f, -largest, -infinity}) {
    EXPECT_EQ(math::exp(x), 0.0f) << x;
  }
  EXPECT_TRUE(math::exp(-86.98f) >= std::numeric_limits<float>::min());
  EXPECT_TRUE(math::exp(0x1.62e42ep+6f) <= largest);
  for (const float x : {0x1.62e430p+6f, 100.0f, 1e10f, largest, infinity}) {
    EXPECT_EQ(math::exp(x), infinity) << x;
    EXPECT_EQ(math::expm1(x), infinity) << x;
  }
  EXPECT_TRUE(std::isnan(math::exp(nan)));
}

TEST(Math, Expm1IsWithinItsBound) {
  EXPECT_WITHIN(sweep(own_expm1, exact_expm1, -largest, 0x1.62e42ep+6f, expm1_bound));
  EXPECT_EQ(math::expm1(0.0f), 0.0f);
  EXPECT_EQ(math::expm1(-infinity), -1.0f);
  EXPECT_TRUE(std::isnan(math::expm1(nan)));
}

TEST(Math, TurnsAreWithinTheirBound) {
  EXPECT_WITHIN(sweep(own_cosine, exact_cosine, -largest, largest, turns_bound));
  // A sine below the normal range has fewer digits to round to.
  EXPECT_WITHIN(sweep(own_sine, exact_sine, 0x1p-126f, largest, turns_bound));
  EXPECT_WITHIN(sweep(own_sine, exact_sine, -largest, -0x1p-126f, turns_bound));
  EXPECT_WITHIN(sweep(own_sine, exact_sine, -0x1p-126f, 0x1p-126f, 1.5));
}

TEST(Math, TurnsAreExactAtQuartersAndStayBounded) {
  const float cosines[] = {1, 0, -1, 0}, sines[] = {0, 1, 0, -1};
  for (int i = 0; i < 64; ++i) {
    const float t = 0.25f * static_cast<float>(i);
    EXPECT_EQ(math::cos_turns(t), cosines[i % 4]);
    EXPECT_EQ(math::cos_turns(-t), cosines[i % 4]);
    EXPECT_EQ(math::sin_turns(t), sines[i % 4]);
    EXPECT_EQ(math::sin_turns(-t), -sines[i % 4]);
  }
  // Whole turns change nothing, to the bit, while t + n is exact.
  for (const float t : {0.125f, 0.3125f, 0.40625f, 0.4375f, 0.5f}) {
    for (const float n : {1.0f, 7.0f, 4096.0f, 131072.0f}) {
      EXPECT_EQ(math::cos_turns(t + n), math::cos_turns(t));
      EXPECT_EQ(math::sin_turns(t + n), math::sin_turns(t));
    }
  }
  // The greatest halves, the first floats with none, and far beyond: whole turns.
  EXPECT_EQ(math::cos_turns(4194303.5f), -1.0f);
  EXPECT_EQ(math::cos_turns(8388607.5f), -1.0f);
  for (const float t : {8388608.0f, 8388609.0f, 16777217.0f, 1e30f, largest}) {
    EXPECT_EQ(math::cos_turns(t), 1.0f);
    EXPECT_EQ(math::sin_turns(-t), 0.0f);
  }
  for (const float t : {nan, infinity, -infinity}) {
    EXPECT_TRUE(std::isnan(math::cos_turns(t)));
    EXPECT_TRUE(std::isnan(math::sin_turns(t)));
  }
  bool bounded = true;
  for (std::uint64_t bits = 0; bits < 0x7f800000u; bits += 1021) {
    const float t = math::from_bits(static_cast<std::uint32_t>(bits));
    if (!(math::abs(math::cos_turns(t)) <= 1.0f)) bounded = false;
    if (!(math::abs(math::sin_turns(t)) <= 1.0f)) bounded = false;
  }
  EXPECT_TRUE(bounded);
}

TEST(Math, ASweepSeesAnErrorOfFourUlpAndNaN) {
  const auto off = [](float y) { return y * (1 + 0x1p-21f); };
  const std::uint32_t s = 65537;
  EXPECT_FALSE(
      sweep([&](float x) { return off(math::log(x)); }, exact_log, smallest, largest, log_bound, s)
          .within);
  EXPECT_FALSE(
      sweep([&](float x) { return off(math::exp(x)); }, exact_exp, -86.98f, 88.0f, exp_bound, s)
          .within);
  EXPECT_FALSE(sweep([&](float x) { return off(math::expm1(x)); }, exact_expm1, -largest, 88.0f,
                     expm1_bound, s)
                   .within);
  EXPECT_FALSE(sweep([&](float x) { return off(math::sin_turns(x)); }, exact_sine, -largest,
                     largest, turns_bound, s)
                   .within);
  EXPECT_FALSE(sweep([](float x) { return x > 2.0f ? nan : math::log(x); }, exact_log, smallest,
                     largest, log_bound, s)
                   .within);
}

TEST(Math, MaxAndMinKeepANaNOfTheFirstArgument) {
  EXPECT_EQ(math::max(1.0f, 2.0f), 2.0f);
  EXPECT_EQ(math::min(1.0f, 2.0f), 1.0f);
  EXPECT_EQ(math::max(-infinity, 0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(math::max(nan, 0.0f)));
  EXPECT_TRUE(std::isnan(math::min(nan, 1e38f)));
  EXPECT_TRUE(std::isnan(math::max(static_cast<double>(nan), 0.0)));
  EXPECT_TRUE(std::isnan(math::min(static_cast<double>(nan), 1e38)));
  EXPECT_EQ(math::max(0.0f, nan), 0.0f);
  EXPECT_EQ(math::min(0.0f, nan), 0.0f);
}

TEST(Math, DoublesForwardToTheStandardLibrary) {
  for (const double x : {0.125, 0.7, 1.0, 3.5, 20.0}) {
    EXPECT_EQ(math::log(x), std::log(x));
    EXPECT_EQ(math::exp(-x), std::exp(-x));
    EXPECT_EQ(math::expm1(x), std::expm1(x));
    EXPECT_EQ(math::sqrt(x), std::sqrt(x));
    EXPECT_EQ(math::abs(-x), x);
    EXPECT_EQ(math::fused(x, x, -1.0), std::fma(x, x, -1.0));
    EXPECT_TRUE(std::fabs(math::cos_turns(x) - exact_cosine(x)) <= 1e-15);
    EXPECT_TRUE(std::fabs(math::sin_turns(x) - exact_sine(x)) <= 1e-15);
  }
  EXPECT_EQ(math::log(0.0), -infinity);
}

TEST(Math, FusedRoundsOnce) {
  // (1 + e)(1 - e) - 1 = -e^2, which a rounded product loses.
  const float e = 0x1p-20f;
  EXPECT_EQ(math::fused(1 + e, 1 - e, -1.0f), -e * e);
  const volatile float product = (1 + e) * (1 - e);
  EXPECT_NE(product - 1.0f, -e * e);
}

// A vectorised loop with FMA instructions gives the bits of scalar calls (to the C library's fmaf
// where the build targets no FMA).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
template <class Function>
HEADLAB_HD void apply(Function f, const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = f(x[i]);
}

struct Everything {
  HEADLAB_HD float operator()(float x) const {
    const float folded = math::log(math::abs(x)) + math::exp(x) * 0.25f;
    return math::max(math::sqrt(math::abs(folded)), 0.5f) +
           (math::cos_turns(x) - math::sin_turns(x)) + math::expm1(math::min(x, 1.0f));
  }
};

__attribute__((target("avx2,fma"), optimize("O3"))) void apply_avx2(const float* x, float* y,
                                                                    int n) {
  apply(Everything{}, x, y, n);
}
__attribute__((target("avx512f,avx512dq,avx2,fma,prefer-vector-width=512"), optimize("O3"))) void
apply_avx512(const float* x, float* y, int n) {
  apply(Everything{}, x, y, n);
}

TEST(Math, VectorsAndScalarsAgreeToTheBit) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 40009) {
    x.push_back(math::from_bits(static_cast<std::uint32_t>(bits)));
  }
  const int n = static_cast<int>(x.size());
  std::vector<float> scalar(x.size()), vector(x.size(), -7.0f);
  apply(Everything{}, x.data(), scalar.data(), n);
  const auto same = [&] {
    std::int64_t differing = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      // The sign and payload of a NaN are not part of the promise.
      if (std::isnan(scalar[i]) && std::isnan(vector[i])) continue;
      if (math::to_bits(scalar[i]) != math::to_bits(vector[i])) ++differing;
    }
    return differing == 0;
  };
  EXPECT_FALSE(same());
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no AVX2";
  apply_avx2(x.data(), vector.data(), n);
  EXPECT_TRUE(same());
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq")) return;
  vector.assign(x.size(), -7.0f);
  apply_avx512(x.data(), vector.data(), n);
  EXPECT_TRUE(same());
}
#endif

}  // namespace
}  // namespace headlab
