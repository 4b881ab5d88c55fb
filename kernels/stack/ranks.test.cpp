// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/ranks.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/stack/layers.h"
#include "kernels/stack/maps.h"
#include "kernels/stack/testing/known_stack.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

TEST(ranks, of_one_norm_on_given_tokens) {
  for (const auto& known : known_depth_cases("layer_norm_ranks")) {
    const CentredTokens x = centred(matrix_from(known["inputs"]["X"]));
    const auto& expected = known["expected"];
    const TokenRanks given = given_ranks(x);
    EXPECT_EQ(given.matrix, expected["rank"].get<int>());
    EXPECT_EQ(given.affine, expected["affine_rank"].get<int>());
    const CentredTokens layer = normed(x, NormKind::layer, 0).tokens;
    // The step's error leaves a residual that is rounding alone out of account.
    EXPECT_EQ(ranks_at_least(layer).affine, expected["affine_rank_after"].get<int>());
    EXPECT_EQ(ranks_at_least(layer).matrix, expected["rank_after"].get<int>());
    EXPECT_EQ(ranks_at_least(normed(x, NormKind::rms, 0).tokens).affine,
              expected["affine_rank_after_rms"].get<int>());
  }
}

TEST(ranks, of_rank_one_tokens_grow_with_the_heads) {
  for (const auto& known : known_depth_cases("ranks")) {
    const auto& in = known["inputs"];
    const int n = in["n"];
    const int d = in["d"];
    Stack stack;
    stack.heads = in["H"];
    stack.spectra = true;
    stack.maps = GaussianMaps{.k = in["d_k"], .value_dim = in["d_v"]};
    const MatrixXd x = normal_matrix({1, 0}, Purpose::design, 0, n, 1, 1) *
                       normal_matrix({1, 0}, Purpose::design, 5, 1, d, 1);
    for (const bool skip : {false, true}) {
      stack.skip = skip ? 1 : 0;
      const LayerMetrics row = stack_metrics(stack, {}, x).at(1);
      const double expected =
          known["expected"][skip ? "with_skip" : "rank_one_tokens_after_one_layer"];
      EXPECT_EQ(row.rank_at_least, expected);
      EXPECT_EQ(row.rank_at_most, expected);
      EXPECT_EQ(row.rank_undecided, 0);
    }
  }
}

TEST(ranks, are_never_certified_above_what_algebra_allows) {
  Stack stack;
  stack.layers = 4;
  stack.heads = 2;
  stack.spectra = true;
  stack.maps = GaussianMaps{.k = 2, .value_dim = 2};
  int decided = 0;
  for (const NormKind kind : {NormKind::none, NormKind::layer}) {
    stack.norm = {.kind = kind, .place = NormPlace::post};
    for (std::uint64_t r = 0; r < 40; ++r) {
      const MatrixXd x = normal_matrix({2, r}, Purpose::design, 0, 8, 6, 1);
      for (const LayerMetrics& row : stack_metrics(stack, {2, r}, x)) {
        EXPECT_LE(row.rank_at_least, row.rank_at_most);
        EXPECT_LE(row.affine_rank_at_least, row.affine_rank_at_most);
        decided += row.rank_undecided == 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(decided, 120);
}

TEST(ranks, negative_control_a_part_that_is_rounding_counts_nothing) {
  CentredTokens x = centred(normal_matrix({3, 0}, Purpose::design, 0, 5, 4, 1));
  EXPECT_EQ(ranks_at_least(x).affine, 4);
  x.residual_error = 1e-3;
  EXPECT_EQ(ranks_at_least(x).affine, 0);
  EXPECT_EQ(ranks_at_least(x).matrix, 1);
  x.mean_error = 1e-3;
  EXPECT_EQ(ranks_at_least(x).matrix, 0);
}

}  // namespace
}  // namespace headlab
