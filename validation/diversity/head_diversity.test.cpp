// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include <Eigen/Dense>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "engine/scenario/law/subspaces/haar.h"
#include "engine/scenario/law/subspaces/orthogonal.h"
#include "engine/scenario/subspaces.h"
#include "engine/testing/refusal.h"
#include "validation/diversity/alike_heads.h"
#include "validation/diversity/indices.h"

namespace headlab {
namespace {

std::string json_of(const HeadDiversity& diversity) {
  return head_diversity_json(diversity, alike_heads(diversity, 5), "f", provenance());
}

using Eigen::MatrixXd;
using Json = nlohmann::json;

HeadFile haar_file(int layers, const Sizes& sizes, std::uint64_t first_seed) {
  HeadFile file;
  for (int n = 0; n < layers; ++n) {
    HeadLayer& layer = file.layers.emplace_back();
    layer.number = n;
    layer.subspaces = to_matrices(
        HaarSubspaces{.seed = first_seed + static_cast<std::uint64_t>(n)}.generate(sizes));
  }
  return file;
}

/// The same, and projections of queries and keys that have these singular values together.
HeadFile query_key_file(int layers, const Sizes& sizes, std::uint64_t first_seed) {
  HeadFile file = haar_file(layers, sizes, first_seed);
  for (HeadLayer& layer : file.layers) {
    const auto seed = first_seed + 1000 + static_cast<std::uint64_t>(layer.number);
    layer.w_q = to_matrices(HaarSubspaces{.seed = seed}.generate(sizes));
    layer.w_k = layer.subspaces;
    for (std::size_t h = 0; h < layer.w_k.size(); ++h) {
      const Eigen::VectorXd s =
          Eigen::VectorXd::LinSpaced(sizes.k, 1, 2 + 0.5 * static_cast<double>(h));
      layer.w_k[h] = layer.w_k[h] * s.asDiagonal();
    }
  }
  return file;
}

const ReferencedIndex& index_of(const LayerDiversity& layer, const std::string& name) {
  for (const ReferencedIndex& index : layer.indices) {
    if (index.name == name) return index;
  }
  throw std::out_of_range(name);
}

TEST(HeadDiversity, HasTheIndicesOfTheSubspaces) {
  const Sizes sizes{.d = 10, .heads = 4, .k = 3, .n = 1};
  HeadFile file = haar_file(2, sizes, 1);
  const auto expected = subspace_indices(file.layers[1].subspaces, std::pow(3, 0.25), {});
  // Another basis of the same subspaces, not orthonormal.
  MatrixXd basis(3, 3);
  basis << 2, 1, 0, 0, 1, 3, 1, 0, 1;
  for (MatrixXd& w : file.layers[1].subspaces) w = w * basis;
  const HeadDiversity diversity = head_diversity(file, "f", 0, 2);
  EXPECT_EQ(diversity.temperature, std::sqrt(3.0));
  EXPECT_EQ(diversity.bandwidth, std::sqrt(std::sqrt(3.0)));
  ASSERT_EQ(diversity.layers.size(), 2u);
  const LayerDiversity& layer = diversity.layers[1];
  double rho = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(layer.indices[i].name, expected[i].name);
    EXPECT_NEAR(*layer.indices[i].value, *expected[i].value, 1e-13);
    EXPECT_NEAR(*layer.indices[i].upper_bound, *expected[i].upper_bound, 1e-13);
  }
  ASSERT_EQ(layer.cosines.size(), 6u);
  for (const double one : layer.gaussian) rho += one / 6;
  EXPECT_NEAR(1 - rho, *expected[2].value, 1e-13);
  EXPECT_FALSE(index_of(layer, "qk").value);
  EXPECT_TRUE(layer.query_key.empty());
  const Eigen::JacobiSVD<MatrixXd> svd(basis);
  EXPECT_NEAR(layer.condition_numbers[0], svd.singularValues()(0) / svd.singularValues()(2), 1e-12);
  EXPECT_NEAR(diversity.layers[0].condition_numbers[0], 1, 1e-14);
}

TEST(HeadDiversity, CosinesAreInTheOrderOfPairs) {
  const Sizes sizes{.d = 9, .heads = 3, .k = 2, .n = 1};
  const HeadFile file = haar_file(1, sizes, 5);
  const HeadDiversity diversity = head_diversity(file, "f", 0, 1);
  const auto& w = file.layers[0].subspaces;
  const std::size_t pairs[3][2] = {{0, 1}, {0, 2}, {1, 2}};
  const Json json = Json::parse(json_of(diversity));
  const Json& matrix = json["layers"][0]["principal_cosines"];
  for (std::size_t p = 0; p < 3; ++p) {
    const auto [l, h] = pairs[p];
    const Eigen::JacobiSVD<MatrixXd> svd(w[l].transpose() * w[h]);
    for (std::size_t j = 0; j < 2; ++j) {
      const double cosine = svd.singularValues()(static_cast<Eigen::Index>(j));
      EXPECT_NEAR(diversity.layers[0].cosines[p][j], cosine, 1e-14);
      EXPECT_EQ(matrix[l][h][j], diversity.layers[0].cosines[p][j]);
      EXPECT_EQ(matrix[h][l][j], diversity.layers[0].cosines[p][j]);
      EXPECT_EQ(matrix[l][l][j], 1);
    }
  }
  EXPECT_EQ(json["layers"][0]["heads"], 3);
  EXPECT_EQ(json["layers"][0]["dim"], 2);
  EXPECT_TRUE(json["layers"][0]["indices"]["qk"]["value"].is_null());
  EXPECT_TRUE(json["layers"][0]["correlations"]["query_key"].is_null());
}

constexpr int random_layers = 300;

/// Over layers of random heads z has mean 0 and variance 1; both to 4.5 standard errors, the second
/// with a tenth more for the sd that comes from random sets.
void expect_no_outliers(const HeadDiversity& diversity) {
  for (const char* name : {"chordal", "spectral", "overlap", "qk"}) {
    double sum = 0, squares = 0;
    for (const LayerDiversity& layer : diversity.layers) {
      const ReferencedIndex& index = index_of(layer, name);
      sum += *index.z;
      squares += *index.z * *index.z;
      if (index.upper_bound) {
        EXPECT_LE(*index.value, *index.upper_bound) << name;
      }
    }
    EXPECT_LE(std::abs(sum / random_layers), 4.5 / std::sqrt(random_layers) + 0.1) << name;
    EXPECT_NEAR(squares / random_layers, 1, 4.5 * std::sqrt(2.0 / random_layers) + 0.1) << name;
  }
}

TEST(HeadDiversity, RandomHeadsAreNoOutliers) {
  const Sizes sizes{.d = 9, .heads = 4, .k = 3, .n = 1};
  const HeadDiversity diversity =
      head_diversity(query_key_file(random_layers, sizes, 50), "f", 3, 2);
  EXPECT_EQ(diversity.random_sets, 200);
  expect_no_outliers(diversity);
  // Control: as many aligned heads among them shift every index.
  HeadFile close = query_key_file(1, sizes, 50);
  close.layers[0].subspaces[1] = close.layers[0].subspaces[0];
  close.layers[0].w_k[1] = close.layers[0].w_k[0];
  close.layers[0].w_q[1] = close.layers[0].w_q[0];
  const HeadDiversity shifted = head_diversity(close, "f", 3, 2);
  for (const char* name : {"chordal", "spectral", "overlap", "qk"}) {
    EXPECT_LT(*index_of(shifted.layers[0], name).z, *index_of(diversity.layers[0], name).z - 1)
        << name;
  }
}

/// Heads of random weights in groups: keys of one Haar subspace a group, queries of one a head.
HeadFile grouped_file(int layers, const Sizes& sizes, int groups, std::uint64_t first_seed) {
  Sizes of_keys = sizes;
  of_keys.heads = groups;
  const HeadFile keys = query_key_file(layers, of_keys, first_seed);
  HeadFile file = query_key_file(layers, sizes, first_seed + 5000);
  file.kv_heads = groups;
  for (std::size_t n = 0; n < file.layers.size(); ++n) {
    for (std::size_t h = 0; h < file.layers[n].w_k.size(); ++h) {
      const std::size_t group =
          h * static_cast<std::size_t>(groups) / static_cast<std::size_t>(sizes.heads);
      file.layers[n].w_k[h] = keys.layers[n].w_k[group];
      file.layers[n].subspaces[h] = keys.layers[n].subspaces[group];
    }
  }
  return file;
}

TEST(HeadDiversity, RandomHeadsInGroupsAreNoOutliers) {
  HeadFile file = grouped_file(random_layers, {.d = 9, .heads = 8, .k = 2, .n = 1}, 4, 50);
  const HeadDiversity diversity = head_diversity(file, "f", 3, 2);
  EXPECT_EQ(diversity.groups, 4);
  expect_no_outliers(diversity);
  // Control: without their groups the same heads are far from random ones.
  file.kv_heads = 0;
  const HeadDiversity ungrouped = head_diversity(file, "f", 3, 2);
  EXPECT_EQ(ungrouped.groups, 8);
  EXPECT_LT(*index_of(ungrouped.layers[0], "chordal").z, -5);
}

TEST(HeadDiversity, OrthogonalGroupsReachTheUpperBounds) {
  const Matrices right =
      to_matrices(OrthogonalSubspaces{}.generate({.d = 8, .heads = 2, .k = 2, .n = 1}));
  HeadFile file;
  file.layers.emplace_back().subspaces = {right[0], right[0], right[1], right[1]};
  file.kv_heads = 2;
  const HeadDiversity diversity = head_diversity(file, "f", 0, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    const ReferencedIndex& index = diversity.layers[0].indices[i];
    EXPECT_NEAR(*index.value, *index.upper_bound, 1e-13) << index.name;
    EXPECT_LT(*index.upper_bound, 1) << index.name;
  }
  EXPECT_NEAR(*diversity.layers[0].indices[0].upper_bound, 2.0 / 3, 1e-15);  // 4 of 6 pairs
  // One group: nothing differs and nothing is random.
  file.layers[0].subspaces = {right[0], right[0], right[0], right[0]};
  file.kv_heads = 1;
  const HeadDiversity one = head_diversity(file, "f", 0, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(*one.layers[0].indices[i].value, 0, 1e-13);
    EXPECT_EQ(*one.layers[0].indices[i].upper_bound, 0);
    EXPECT_FALSE(one.layers[0].indices[i].z);
  }
}

TEST(HeadDiversity, HeadsOfAGroupShareTheirKeys) {
  HeadFile file = haar_file(1, {.d = 8, .heads = 4, .k = 2, .n = 1}, 3);
  file.kv_heads = 2;
  EXPECT_EQ(refusal_line([&] { head_diversity(file, "f", 0, 2); }),
            "f: layer 0: heads 0 and 1 have different keys but are of one group - are there 2 "
            "groups of heads that share keys?");
}

TEST(HeadDiversity, ReferencesAgreeAcrossSeeds) {
  const Sizes sizes{.d = 12, .heads = 4, .k = 3, .n = 1};
  const HeadFile file = query_key_file(1, sizes, 7);
  const HeadDiversity one = head_diversity(file, "f", 0, 2),
                      other = head_diversity(file, "f", 1, 2);
  for (std::size_t i = 0; i < 4; ++i) {
    const ReferencedIndex &a = one.layers[0].indices[i], &b = other.layers[0].indices[i];
    EXPECT_EQ(a.value, b.value);
    EXPECT_LE(std::abs(*a.random_mean - *b.random_mean),
              4.5 * std::hypot(a.random_mcse, b.random_mcse))
        << a.name;
    // 100 sets and more give the sd to about 7 %.
    EXPECT_NEAR(*a.random_sd / *b.random_sd, 1, 0.35) << a.name;
    EXPECT_EQ(*a.random_mean == *b.random_mean, a.name == "chordal");
  }
  const HaarNull null = haar_null(12, 3, 4);
  EXPECT_EQ(one.layers[0].indices[0].random_mean, null.mean);
  EXPECT_EQ(one.layers[0].indices[0].random_sd, null.sd);
}

TEST(HeadDiversity, ThreadsChangeNoFigure) {
  const HeadFile file = query_key_file(3, {.d = 9, .heads = 3, .k = 2, .n = 1}, 11);
  const std::string one = json_of(head_diversity(file, "f", 5, 1));
  EXPECT_EQ(one, json_of(head_diversity(file, "f", 5, 4)));
  EXPECT_NE(one, json_of(head_diversity(file, "f", 6, 4)));
}

TEST(HeadDiversity, StopsBetweenLayers) {
  const HeadFile file = query_key_file(3, {.d = 9, .heads = 3, .k = 2, .n = 1}, 11);
  const int all = head_diversity(file, "f", 5, 1).random_sets + 3;
  int asked = 0;
  head_diversity(file, "f", 5, 1, [&] { return ++asked > all; });
  EXPECT_EQ(asked, all);
  asked = 0;
  EXPECT_THROW(head_diversity(file, "f", 5, 1, [&] { return ++asked >= all; }), Stopped);
}

/// The law haar of a scenario with the same seed is not one of the sets.
TEST(HeadDiversity, RandomHeadsAreOthersThanThoseOfTheLaw) {
  const Sizes sizes{.d = 9, .heads = 3, .k = 2, .n = 1};
  HeadFile file = haar_file(1, sizes, 0);
  EXPECT_GT(std::abs(*head_diversity(file, "f", 0, 1).layers[0].indices[0].z), 1e-6);
}

TEST(HeadDiversity, DegenerateShapes) {
  const HeadDiversity one =
      head_diversity(haar_file(1, {.d = 5, .heads = 1, .k = 2, .n = 1}, 1), "f", 0, 2);
  for (const ReferencedIndex& index : one.layers[0].indices) {
    EXPECT_FALSE(index.value) << index.name;
    EXPECT_FALSE(index.z) << index.name;
  }
  EXPECT_EQ(one.random_sets, 0);
  const HeadDiversity full =
      head_diversity(query_key_file(1, {.d = 3, .heads = 2, .k = 3, .n = 1}, 1), "f", 0, 2);
  EXPECT_NEAR(*full.layers[0].indices[0].value, 0, 1e-14);
  EXPECT_FALSE(full.layers[0].indices[0].z);
  EXPECT_FALSE(full.layers[0].indices[1].value);
  EXPECT_TRUE(full.layers[0].indices[3].value);
  HeadFile right;
  right.layers.emplace_back().subspaces =
      to_matrices(OrthogonalSubspaces{}.generate({.d = 8, .heads = 4, .k = 2, .n = 1}));
  const HeadDiversity orthogonal = head_diversity(right, "f", 0, 2);
  EXPECT_NEAR(*orthogonal.layers[0].indices[0].value, 1, 1e-14);
  EXPECT_GT(*orthogonal.layers[0].indices[0].z, 3);
  for (const auto& figure : {one, full, orthogonal}) {
    EXPECT_EQ(json_of(figure).find("nan"), std::string::npos);
  }
}

TEST(HeadDiversity, RotaryHeadsHaveNoQueryKeyIndex) {
  HeadFile file = query_key_file(1, {.d = 9, .heads = 3, .k = 2, .n = 1}, 2);
  EXPECT_TRUE(head_diversity(file, "f", 0, 1).layers[0].indices[3].value);
  file.rotary = true;
  EXPECT_FALSE(head_diversity(file, "f", 0, 1).layers[0].indices[3].value);
}

TEST(HeadDiversity, RefusesWhatHasNoSubspace) {
  const auto refusal = [](const HeadFile& file) {
    return refusal_line([&] { head_diversity(file, "f", 0, 2); });
  };
  const HeadFile good = query_key_file(2, {.d = 6, .heads = 2, .k = 2, .n = 1}, 3);
  HeadFile bad = good;
  bad.layers[1].subspaces[1].col(1) = 3 * bad.layers[1].subspaces[1].col(0);
  EXPECT_EQ(refusal(bad), "f: matrix of layer 1, head 1 has rank 1, below k = 2");
  bad = good;
  bad.layers[0].w_k[1].setZero();
  EXPECT_EQ(refusal(bad), "f: w_k of layer 0, head 1 has rank 0, below k = 2");
  bad = good;
  bad.layers[0].w_k[1] *= 1e200;
  EXPECT_EQ(refusal(bad), "f: layer 0: logits of the heads leave float64");
  bad = good;
  bad.layers[0].subspaces[1] *= 1e200;
  EXPECT_EQ(refusal(bad), "accepted");
}

}  // namespace
}  // namespace headlab
