// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/alike_heads.h"

#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

/// Lines of the plane at these angles.
HeadFile file_of_lines(const std::vector<std::vector<double>>& layers) {
  HeadFile file;
  for (const std::vector<double>& angles : layers) {
    HeadLayer& layer = file.layers.emplace_back();
    layer.number = static_cast<int>(file.layers.size()) - 1;
    for (const double angle : angles) {
      layer.subspaces.emplace_back(Eigen::MatrixXd{{std::cos(angle)}, {std::sin(angle)}});
    }
  }
  return file;
}

TEST(AlikeHeads, AsByHand) {
  const double square = std::cos(0.3) * std::cos(0.3);
  const HeadDiversity lines =
      head_diversity(file_of_lines({{0, 1.5, 0, 0.3}, {0, 1, 2, 0.2}}), "f", 0, 1);
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
}

/// Six heads in three groups: 0 and 1, 2 and 3, 4 and 5; 4 has the subspace of the first group.
TEST(AlikeHeads, ThoseOfOneGroupShareKeysByConstruction) {
  HeadFile file = file_of_lines({{0, 0, 1, 1, 2, 2}, {0, 0, 1, 1, 0, 0}});
  const auto shared = [&](int kv_heads) {
    file.kv_heads = kv_heads;
    std::vector<std::pair<std::vector<int>, bool>> sets;
    for (const IdenticalHeads& set : alike_heads(head_diversity(file, "f", 0, 1), 5).identical) {
      sets.emplace_back(set.heads, set.share_keys);
    }
    return sets;
  };
  using Sets = std::vector<std::pair<std::vector<int>, bool>>;
  EXPECT_EQ(
      shared(3),
      (Sets{
          {{0, 1}, true}, {{2, 3}, true}, {{4, 5}, true}, {{0, 1, 4, 5}, false}, {{2, 3}, true}}));
  // Without groups nothing is so by construction.
  EXPECT_EQ(shared(0), (Sets{{{0, 1}, false},
                             {{2, 3}, false},
                             {{4, 5}, false},
                             {{0, 1, 4, 5}, false},
                             {{2, 3}, false}}));
  EXPECT_TRUE(alike_heads(head_diversity(file, "f", 0, 1), 0).identical.empty());
}

TEST(AlikeHeads, KeepsTheNumbersOfTheModel) {
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
