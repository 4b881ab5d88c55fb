// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/redundancy.h"

#include <cmath>

#include <gtest/gtest.h>

namespace headlab {
namespace {

/// Lines of the plane at these angles.
HeadDiversity lines_at(const std::vector<std::vector<double>>& layers) {
  HeadFile file;
  for (const std::vector<double>& angles : layers) {
    HeadLayer& layer = file.layers.emplace_back();
    layer.number = static_cast<int>(file.layers.size()) - 1;
    for (const double angle : angles) {
      layer.subspaces.emplace_back(Eigen::MatrixXd{{std::cos(angle)}, {std::sin(angle)}});
    }
  }
  return head_diversity(file, "f", 0, 1);
}

TEST(Redundancy, AsByHand) {
  const double square = std::cos(0.3) * std::cos(0.3);
  const HeadDiversity lines = lines_at({{0, 1.5, 0, 0.3}, {0, 1, 2, 0.2}});
  const auto pairs = alike_pairs(lines, 2);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].layer, 1);
  EXPECT_EQ(pairs[0].first, 0);
  EXPECT_EQ(pairs[0].second, 3);
  EXPECT_NEAR(pairs[0].mean_squared_cosine, std::cos(0.2) * std::cos(0.2), 1e-12);
  // Heads 0 and 2 of layer 0 are one line, which is in one pair with head 3.
  EXPECT_EQ(pairs[1].layer, 0);
  EXPECT_EQ(pairs[1].first, 0);
  EXPECT_EQ(pairs[1].second, 3);
  EXPECT_NEAR(pairs[1].mean_squared_cosine, square, 1e-12);
  EXPECT_EQ(alike_pairs(lines, 100).size(), 3u + 6u);
  EXPECT_EQ(identical_heads(lines.layers[0]), (std::vector<std::vector<int>>{{0, 2}}));
  EXPECT_TRUE(identical_heads(lines.layers[1]).empty());
  EXPECT_EQ(redundant_heads(lines.layers[0], 0.95), 1);
  EXPECT_EQ(redundant_heads(lines.layers[0], square - 1e-9), 2);
  EXPECT_EQ(redundant_heads(lines.layers[0], square + 1e-9), 1);
  EXPECT_EQ(redundant_heads(lines.layers[1], 0), 3);
}

TEST(Redundancy, AHeadIsComparedWithThoseThatAreKept) {
  // 0, 0.3, 0.6: head 1 goes for head 0; head 2 is close to head 1 alone and stays.
  EXPECT_EQ(redundant_heads(lines_at({{0, 0.3, 0.6}}).layers[0], 0.9), 1);
}

TEST(Redundancy, KeepsTheNumbersOfTheModel) {
  HeadFile file;
  file.model_heads = 4;
  for (int n = 0; n < 2; ++n) {
    HeadLayer& layer = file.layers.emplace_back();
    layer.number = n;
    if (n == 1) layer.heads = {0, 1, 3};
    for (int h = 0; h < 4 - n; ++h) {
      const double angle = h < 3 - n ? h : 0;
      layer.subspaces.emplace_back(Eigen::MatrixXd{{std::cos(angle)}, {std::sin(angle)}, {0.0}});
    }
  }
  const HeadDiversity diversity = head_diversity(file, "f", 0, 1);
  EXPECT_EQ(diversity.heads, 4);
  EXPECT_EQ(identical_heads(diversity.layers[0]), (std::vector<std::vector<int>>{{0, 3}}));
  EXPECT_EQ(identical_heads(diversity.layers[1]), (std::vector<std::vector<int>>{{0, 3}}));
  // Each layer is compared with random heads of its own number.
  HeadFile alone;
  alone.layers = {file.layers[1]};
  alone.layers[0].heads.clear();
  const HeadDiversity three = head_diversity(alone, "f", 0, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(diversity.layers[1].indices[i].value, three.layers[0].indices[i].value);
    EXPECT_EQ(diversity.layers[1].indices[i].random_mean, three.layers[0].indices[i].random_mean);
    EXPECT_EQ(diversity.layers[1].indices[i].z, three.layers[0].indices[i].z);
  }
  EXPECT_NE(diversity.layers[0].indices[1].random_mean, three.layers[0].indices[1].random_mean);
}

}  // namespace
}  // namespace headlab
