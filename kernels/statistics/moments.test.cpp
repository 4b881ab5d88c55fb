// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/moments.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace headlab {
namespace {

std::vector<double> random_statistics(const MomentLayout& layout, int replicates, double shift) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> values(layout.statistics() * static_cast<std::size_t>(replicates));
  for (double& value : values) value = shift + normal(random);
  return values;
}

/// Comoments of the first components of each query by their definition, in long double.
std::vector<double> plain_comoments(const MomentLayout& layout, const std::vector<double>& values,
                                    std::size_t replicates) {
  std::vector<double> result;
  for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
    auto at = [&](std::size_t r, std::size_t g) {
      return static_cast<long double>(values[r * layout.statistics() + q * layout.per_query() + g]);
    };
    auto comoment = [&](std::size_t g, std::size_t l) {
      long double mean_g = 0;
      long double mean_l = 0;
      long double sum = 0;
      for (std::size_t r = 0; r < replicates; ++r) {
        mean_g += at(r, g) / static_cast<long double>(replicates);
        mean_l += at(r, l) / static_cast<long double>(replicates);
      }
      for (std::size_t r = 0; r < replicates; ++r) sum += (at(r, g) - mean_g) * (at(r, l) - mean_l);
      return static_cast<double>(sum);
    };
    for (std::size_t g = 0; g < layout.components(); ++g) {
      for (std::size_t l = g; l < (layout.pairwise() ? layout.components() : g + 1); ++l) {
        result.push_back(comoment(g, l));
      }
    }
  }
  return result;
}

Moments leaf(const MomentLayout& layout, const std::vector<double>& values, std::size_t first,
             int count) {
  Moments moments;
  leaf_moments(layout, std::span(values).subspan(first * layout.statistics()), count, moments);
  return moments;
}

TEST(Moments, OfMergedLeavesEqualTheirDefinition) {
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    const MomentLayout layout{.queries = 2, .heads = 3, .mode = mode, .conditional = true};
    // A mean 10^6 times the spread, which sums of squares would not survive.
    const auto values = random_statistics(layout, 21, 1e6);

    Moments all = leaf(layout, values, 0, 8);
    merge_moments(layout, all, leaf(layout, values, 8, 8));
    merge_moments(layout, all, leaf(layout, values, 16, 5));

    const auto expected = plain_comoments(layout, values, 21);
    ASSERT_EQ(all.comoment.size(), expected.size());
    EXPECT_EQ(all.count, 21u);
    // Each of the 21 products has two deviations of at most 4.5, and each deviation, a difference
    // of numbers near 1e6, carries the rounding of these: of the mean of a leaf, of two merged
    // means and of the difference itself.
    constexpr double rounding = 4 * 1e6 * 0x1p-53;
    constexpr double tolerance = 21 * 2 * 4.5 * rounding;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(std::abs(all.comoment[i] - expected[i]) <= tolerance) << i;
    }
    // Negative control: without the difference of the means the merge is seen to be wrong.
    Moments shifted = leaf(layout, values, 0, 8);
    Moments later = leaf(layout, values, 8, 8);
    later.mean = shifted.mean;
    merge_moments(layout, shifted, later);
    merge_moments(layout, shifted, leaf(layout, values, 16, 5));
    EXPECT_FALSE(std::abs(shifted.comoment[0] - expected[0]) <= tolerance);
  }
}

TEST(Moments, OfAConstantAreExactlyZero) {
  const MomentLayout layout{.queries = 1, .heads = 2};
  const std::vector<double> values(16 * layout.statistics(), 0.1);

  Moments all = leaf(layout, values, 0, 8);
  merge_moments(layout, all, leaf(layout, values, 8, 7));

  for (const double comoment : all.comoment) EXPECT_EQ(comoment, 0.0);
  for (const double mean : all.mean) EXPECT_EQ(mean, 0.1);
}

TEST(Moments, LayoutNumbersPairsRowByRow) {
  const MomentLayout layout{.queries = 1, .heads = 4};
  std::size_t expected = 0;
  for (std::size_t g = 0; g < 4; ++g) {
    for (std::size_t l = g; l < 4; ++l) EXPECT_EQ(layout.pair(g, l), expected++);
  }
  EXPECT_EQ(layout.pairs(), expected);
  EXPECT_EQ(layout.per_query(), 4u + 10u + 1u);
}

}  // namespace
}  // namespace headlab
