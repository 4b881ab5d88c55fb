// SPDX-License-Identifier: Apache-2.0
#include "kernels/draws.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/philox.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

constexpr std::uint32_t last_word = 0xffffffffu;

/// Words that reach every exponent from both ends, and a stride through all.
std::vector<std::uint32_t> words_of_all_sizes() {
  std::vector<std::uint32_t> words = {0, last_word};
  for (int bit = 0; bit < 32; ++bit) {
    for (const std::uint32_t off : {0u, 1u, 2u, 3u, 0x12345678u, 0x5a5a5a5au, 0xffffffffu}) {
      const std::uint32_t word = (1u << bit) | (off & ((1u << bit) - 1u));
      words.push_back(word);
      words.push_back(~word);
    }
  }
  return words;
}

/// How many words of all sizes, and every 1021st, are not right.
template <class Right>
std::int64_t wrong_words(const Right& right) {
  std::int64_t wrong = std::ranges::count_if(words_of_all_sizes(), std::not_fn(right));
  for (std::uint64_t word = 0; word <= last_word; word += 1021) {
    wrong += right(static_cast<std::uint32_t>(word)) ? 0 : 1;
  }
  return wrong;
}

TEST(Draws, UniformOpenIsRoundedOnce) {
  EXPECT_EQ(wrong_words([](std::uint32_t word) {
              return uniform_open(word) == static_cast<float>((word + 0.5) * 0x1p-32);
            }),
            0);
  EXPECT_EQ(uniform_open(0), 0x1p-33f);
  EXPECT_EQ(uniform_open(last_word), 1.0f);
}

TEST(Draws, UniformSymmetricIsExactOddAndOpen) {
  EXPECT_EQ(wrong_words([](std::uint32_t word) {
              const float u = uniform_symmetric(word);
              return u == ((word >> 8) + 0.5) * 0x1p-23 - 1 && u == -uniform_symmetric(~word);
            }),
            0);
  EXPECT_EQ(uniform_symmetric(0), -1 + 0x1p-24f);
  EXPECT_EQ(uniform_symmetric(last_word), 1 - 0x1p-24f);
  EXPECT_EQ(uniform_symmetric(0x80000000u), 0x1p-24f);
}

TEST(Draws, ChooseIsAFloorInRange) {
  EXPECT_EQ(choose(0, 1), 0u);
  EXPECT_EQ(choose(last_word, 1), 0u);
  EXPECT_EQ(choose(last_word, 7), 6u);
  EXPECT_EQ(choose(last_word, last_word), last_word - 1);
  EXPECT_EQ(choose(0x80000000u, 2), 1u);
  EXPECT_EQ(choose(0x7fffffffu, 2), 0u);
  // Over all words (here every 2^12-th) the classes are equal to within one.
  std::vector<int> counts(7);
  for (std::uint64_t word = 0; word <= last_word; word += 4096) {
    ++counts[choose(static_cast<std::uint32_t>(word), 7)];
  }
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
  EXPECT_TRUE(*high - *low <= 1);
}

TEST(Draws, CategoricalIsTheFirstClassAbove) {
  const float cumulative[] = {0.0f, 0.25f, 0.25f, 0.625f, 1.0f, 1.0f};
  std::vector<std::int64_t> counts(6);
  for (std::uint64_t word = 0; word <= last_word; word += 4096) {
    ++counts[static_cast<std::size_t>(
        categorical(static_cast<std::uint32_t>(word), cumulative, 6))];
  }
  const std::int64_t n = std::int64_t{1} << 20;
  EXPECT_EQ(counts, (std::vector<std::int64_t>{0, n / 4, 0, 3 * n / 8, 3 * n / 8, 0}));
  EXPECT_EQ(categorical(0, cumulative, 6), 1);
  EXPECT_EQ(categorical(0x40000000u, cumulative, 6), 3);
  EXPECT_EQ(categorical(0x3fffffffu, cumulative, 6), 1);
  EXPECT_EQ(categorical(last_word, cumulative, 6), 4);
  const float one[] = {1.0f};
  EXPECT_EQ(categorical(last_word, one, 1), 0);
  const float short_of_one[] = {0.5f, 0.75f};
  EXPECT_EQ(categorical(last_word, short_of_one, 2), 1);
}

/// R, and cos A and sin A, in long double.
long double exact_radius(std::uint32_t a) {
  // Of the complement where that is the smaller, so that log1p keeps the small number's digits.
  const long double u = (a + 0.5L) * 0x1p-32L;
  return std::sqrt(-2 * (a >> 31 ? std::log1p(-((~a) + 0.5L) * 0x1p-32L) : std::log(u)));
}
struct Direction {
  std::uint32_t b;
  long double cosine, sine;
};
Direction exact_direction(std::uint32_t b) {
  const long double quarter_turn = std::acos(-1.0L) / 2;
  const auto rest = static_cast<std::int32_t>(b - ((b + 0x20000000u) & 0xc0000000u));
  const long double angle = quarter_turn * 4 * 0x1p-32L * rest;
  const long double c = std::cos(angle), s = std::sin(angle);
  switch ((b + 0x20000000u) >> 30) {
    case 0:
      return {b, c, s};
    case 1:
      return {b, -s, c};
    case 2:
      return {b, -c, -s};
    default:
      return {b, s, -c};
  }
}

// The bounds of the docstring, which come from all words a and all b.
constexpr double relative_bound = 5.4 * 0x1p-24, absolute_bound = 2.2e-6;

/// Whether every pair of the sampler is exact to the bounds (so exactly 0 at the quarters).
template <class Sampler>
bool accurate(Sampler sampler, double& worst) {
  std::vector<Direction> directions;
  for (std::uint64_t b = 0; b <= last_word; b += 8380417) {
    directions.push_back(exact_direction(static_cast<std::uint32_t>(b)));
  }
  for (std::uint32_t eighth = 0; eighth < 8; ++eighth) {
    for (std::uint32_t bit = 0; bit < 29; bit += 2) {
      directions.push_back(exact_direction((eighth << 29) + (1u << bit)));
      directions.push_back(exact_direction((eighth << 29) - (1u << bit)));
    }
    directions.push_back(exact_direction(eighth << 29));
  }
  bool all = true;
  const auto compare = [&](float x, long double exact) {
    const double error = static_cast<double>(std::fabs(static_cast<long double>(x) - exact));
    const double size = static_cast<double>(std::fabs(exact));
    if (!(error <= relative_bound * size && error <= absolute_bound)) all = false;
    if (size > 0 && !(error / size <= worst)) worst = error / size;
  };
  for (const std::uint32_t a : words_of_all_sizes()) {
    const long double radius = exact_radius(a);
    for (const Direction& d : directions) {
      const NormalPair z = sampler(a, d.b);
      compare(z.first, radius * d.cosine);
      compare(z.second, radius * d.sine);
    }
  }
  return all;
}

TEST(Draws, NormalsAreAccurateToTheLastDigits) {
  double worst = 0;
  EXPECT_TRUE(accurate([](auto a, auto b) { return normal_pair(a, b); }, worst))
      << worst * 0x1p24 << " 2^-24";
  EXPECT_EQ(normal_pair(0, 0).second, 0.0f);
  EXPECT_EQ(normal_pair(5, 0x40000000u).first, 0.0f);
  EXPECT_TRUE(std::fabs(normal_pair(0, 0).first - std::sqrt(66 * std::log(2.0))) <= 2e-6);
  EXPECT_TRUE(normal_pair(last_word, 0).first >= 0x1p-16f);
}

TEST(Draws, AnAngleOffByTwoToTheMinus21IsSeen) {
  double worst = 0;
  const auto rotated = [](std::uint32_t a, std::uint32_t b) {
    const NormalPair z = normal_pair(a, b);
    return NormalPair{math::fused(z.second, -0x1p-21f, z.first), z.second};
  };
  EXPECT_FALSE(accurate(rotated, worst));
  const auto plain = [](std::uint32_t a, std::uint32_t b) {
    const float radius = math::sqrt(-2.0f * math::log(uniform_open(a)));
    const float turns = static_cast<float>(b) * 0x1p-32f;
    return NormalPair{radius * math::cos_turns(turns), radius * math::sin_turns(turns)};
  };
  EXPECT_FALSE(accurate(plain, worst));
}

// Statistics of a fixed stream: a test either always passes or never does. Each is a bool, and is
// shown to turn false for a sampler spoilt a little. There are some 20 of them; |z| <= 6 fails a
// right sampler with probability 4e-8 all told, and the Kolmogorov-Smirnov bound with 3e-8 each.
constexpr double ks_bound = 3;
constexpr std::uint64_t pairs = std::uint64_t{1} << 19;

using TrainingSet = std::vector<float>;

Words words_of(std::uint64_t quad) {
  return philox(20240601, subsequence(Purpose::design, 0), quad);
}

/// 2^20 normals, the firsts and seconds of the pairs in turn.
TrainingSet normals() {
  TrainingSet x;
  x.reserve(2 * pairs);
  for (std::uint64_t quad = 0; quad < pairs / 2; ++quad) {
    const Words w = words_of(quad);
    for (int i = 0; i < 4; i += 2) {
      const NormalPair z = normal_pair(w.w[i], w.w[i + 1]);
      x.push_back(z.first);
      x.push_back(z.second);
    }
  }
  return x;
}

template <class Transform>
TrainingSet uniforms(Transform transform) {
  TrainingSet x;
  x.reserve(pairs);
  for (std::uint64_t quad = 0; quad < pairs / 4; ++quad) {
    for (const std::uint32_t word : words_of(quad).w) x.push_back(transform(word));
  }
  return x;
}

template <class Change>
TrainingSet changed(TrainingSet x, Change change) {
  for (float& value : x) value = change(value);
  return x;
}

/// Mean of x^k against moments[k], with variance (moments[2k] - moments[k]^2) / n, for k = 1..4.
bool has_moments(const TrainingSet& x, const double (&moments)[9]) {
  double sums[5] = {};
  for (const float value : x) {
    double power = 1;
    for (int k = 1; k <= 4; ++k) sums[k] += power *= static_cast<double>(value);
  }
  const double n = static_cast<double>(x.size());
  for (int k = 1; k <= 4; ++k) {
    const double error = sums[k] / n - moments[k];
    const double variance = (moments[2 * k] - moments[k] * moments[k]) / n;
    if (!(std::fabs(error) <= strict_z_bound * std::sqrt(variance))) return false;
  }
  return true;
}

/// x[i] and x[i + lag] are uncorrelated, and so are their squares: the sums of n products of
/// independent N(0, 1) have variance n, of n products of x^2 - 1 variance 4 n.
bool uncorrelated(const TrainingSet& x, std::size_t lag) {
  double first = 0, second = 0;
  for (std::size_t i = 0; i + lag < x.size(); ++i) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(x[i + lag]);
    first += a * b;
    second += (a * a - 1) * (b * b - 1);
  }
  const double n = static_cast<double>(x.size() - lag);
  return std::fabs(first) <= strict_z_bound * std::sqrt(n) &&
         std::fabs(second) <= strict_z_bound * 2 * std::sqrt(n);
}

constexpr double normal_moments[9] = {1, 0, 1, 0, 3, 0, 15, 0, 105};
constexpr double open_moments[9] = {1,       1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5,
                                    1.0 / 6, 1.0 / 7, 1.0 / 8, 1.0 / 9};
constexpr double symmetric_moments[9] = {1, 0, 1.0 / 3, 0, 1.0 / 5, 0, 1.0 / 7, 0, 1.0 / 9};

const auto normal_cdf = [](double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); };
const auto open_cdf = [](double x) { return x; };
const auto symmetric_cdf = [](double x) { return 0.5 * (x + 1); };

TEST(Draws, NormalsHaveTheirMoments) {
  const TrainingSet x = normals();
  EXPECT_TRUE(has_moments(x, normal_moments));
  const auto scaled = changed(x, [](float z) { return z * std::sqrt(1.01f); });
  EXPECT_FALSE(has_moments(scaled, normal_moments)) << "variance off by 1 %";
  EXPECT_FALSE(has_moments(changed(x, [](float z) { return z + 0.01f; }), normal_moments));
  EXPECT_FALSE(has_moments(changed(x, [](float z) { return math::min(z, 2.5f); }), normal_moments));
  TrainingSet spoilt = x;
  spoilt[9] = std::nanf("");
  EXPECT_FALSE(has_moments(spoilt, normal_moments));
}

TEST(Draws, NormalsHaveTheirDistribution) {
  const TrainingSet x = normals();
  EXPECT_LE(kolmogorov(x, normal_cdf), ks_bound);
  EXPECT_GT(kolmogorov(changed(x, [](float z) { return z + 0.01f; }), normal_cdf), ks_bound);
  EXPECT_GT(kolmogorov(changed(x, [](float z) { return z * 1.02f; }), normal_cdf), ks_bound);
}

TEST(Draws, NormalsAreUncorrelated) {
  TrainingSet x = normals();
  for (const std::size_t lag : {1u, 2u, 3u, 4u, 8u, 32u}) EXPECT_TRUE(uncorrelated(x, lag)) << lag;
  // Lanes that share 2 % of their draw.
  TrainingSet shared = x;
  for (std::size_t i = 1; i < x.size(); ++i) shared[i] += 0.02f * x[i - 1];
  EXPECT_FALSE(uncorrelated(shared, 1));
  // One radius too many: both of a pair scaled by a common factor, which only squares see.
  TrainingSet radii = x;
  for (std::size_t i = 0; i + 1 < x.size(); i += 2) {
    const float factor = (words_of(i).w[0] >> 31) != 0 ? 1.1f : 0.9f;
    radii[i] *= factor;
    radii[i + 1] *= factor;
  }
  EXPECT_FALSE(uncorrelated(radii, 1));
}

TEST(Draws, UniformsHaveTheirMomentsAndDistribution) {
  const TrainingSet open = uniforms(uniform_open), symmetric = uniforms(uniform_symmetric);
  EXPECT_TRUE(has_moments(open, open_moments));
  EXPECT_TRUE(has_moments(symmetric, symmetric_moments));
  EXPECT_LE(kolmogorov(open, open_cdf), ks_bound);
  EXPECT_LE(kolmogorov(symmetric, symmetric_cdf), ks_bound);
  const auto shifted = [](float u) { return u + 0.01f; };
  const auto scaled = [](float u) { return u * std::sqrt(1.01f); };
  EXPECT_FALSE(has_moments(changed(open, shifted), open_moments));
  EXPECT_FALSE(has_moments(changed(symmetric, scaled), symmetric_moments));
  EXPECT_GT(kolmogorov(changed(open, shifted), open_cdf), ks_bound);
  EXPECT_GT(kolmogorov(changed(symmetric, shifted), symmetric_cdf), ks_bound);
}

}  // namespace
}  // namespace headlab
