// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/worked_examples.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "validation/theory/depth/layer_ranks.h"
#include "validation/theory/depth/testing/known_answers.h"
#include "validation/theory/depth/walks.h"

namespace headlab {
namespace {

constexpr std::uint64_t seeds[] = {1, 2, 3, 4, 5};

TEST(WorkedExamples, HeadChannels) {
  for (const std::uint64_t seed : seeds) {
    const HeadChannels channels = head_channels(5, 4, 3, seed);
    EXPECT_EQ(channels.hidden, 45);
    EXPECT_EQ(channels.read_out, 45);
    EXPECT_EQ(channels.shared_row_space, 45);
    EXPECT_EQ(channels.full_output, 0);
  }
  const LayerSizes sizes = {.n = 5, .d = 12, .heads = 4, .dim = 3, .value_dim = 3};
  EXPECT_EQ(shared_projection_nullity(sizes), 45);
  EXPECT_EQ(generic_projection_nullity(sizes), 0);
  EXPECT_THROW(head_channels(0, 1, 1, 1), InvalidInput);
}

TEST(WorkedExamples, LayerNorm) {
  for (const std::uint64_t seed : seeds) {
    const LayerNormExamples examples = layer_norm_examples(seed);
    EXPECT_EQ(examples.few.affine_rank, 7);
    EXPECT_EQ(examples.few.affine_rank_after, 7);
    EXPECT_EQ(examples.few.rank_after, 7);
    EXPECT_EQ(examples.few.rank_after_any_bias, 8);
    EXPECT_EQ(examples.many.affine_rank, 8);
    EXPECT_EQ(examples.many.affine_rank_after, 7);
    EXPECT_EQ(examples.shifted.affine_rank, 1);
    EXPECT_EQ(examples.shifted.affine_rank_after, 0);
    EXPECT_EQ(examples.shifted_gently.affine_rank_after, 0);
    EXPECT_EQ(examples.collinear.affine_rank, 1);
    EXPECT_EQ(examples.collinear.affine_rank_after, 2);
  }
}

TEST(WorkedExamples, ANormProtectsAndContributes) {
  const NormedShares protects = norm_protects(5);
  const double with_norm[] = {0.5, 0.960, 0.9983, 0.99993};
  const double without[] = {0.5, 0.960, 0.989, 0.272, 2e-12, 6e-50};
  for (std::size_t l = 0; l < std::size(with_norm); ++l) {
    EXPECT_NEAR(protects.with_norm[l], with_norm[l], 5e-4);
  }
  for (std::size_t l = 0; l < std::size(without); ++l) {
    EXPECT_TRUE(within(protects.without[l], without[l], 0.2, 0)) << protects.without[l];
  }

  // Odds mu/rho: to .0647 without the norm; with it past 1, gaining up to 4 a layer.
  const auto odds = [](double share) { return 1 / share - 1; };
  const NormedShares contributes = norm_contributes(200);
  EXPECT_NEAR(odds(contributes.without.back()), 0.0647, 5e-5);
  std::size_t layer = 0;
  while (odds(contributes.with_norm[layer]) < 1) ++layer;
  EXPECT_EQ(layer, 10u);
  const double late = contributes.with_norm[20] / contributes.with_norm[21];
  EXPECT_NEAR(late, 4, 0.01);
}

TEST(WorkedExamples, Span) {
  for (const std::uint64_t seed : seeds) {
    const SpanExamples examples = span_examples(seed);
    EXPECT_EQ(examples.identity_values, 0);
    EXPECT_EQ(examples.tokens_span_all, 0);
    EXPECT_EQ(examples.general_values, 2);
    EXPECT_EQ(examples.line, 2);
    EXPECT_EQ(examples.line_after_mlp, 8);
    EXPECT_EQ(examples.ray, 1);
    EXPECT_EQ(examples.ray_after_mlp, 2);
  }
}

TEST(WorkedExamples, Walks) {
  const auto times = [](const Matrices& walks) {
    return std::vector<std::uint64_t>{
        mixing_time({walks[0]}, 0.25).value(), mixing_time({walks[1]}, 0.25).value(),
        mixing_time({averaged_walk(walks)}, 0.25).value(), mixing_time(walks, 0.25).value()};
  };
  EXPECT_EQ(times(complementary_walks(4, 0.1)), (std::vector<std::uint64_t>{66, 66, 19, 14}));
  EXPECT_EQ(times(antagonistic_walks()), (std::vector<std::uint64_t>{2, 2, 3, 2}));
  // Negative control: nothing to gain where both are fast.
  EXPECT_EQ(times(complementary_walks(4, 1)), (std::vector<std::uint64_t>{8, 8, 8, 8}));
}

TEST(WorkedExamples, Fidelity) {
  const std::vector<GraphEdges> graphs = antagonistic_graphs();
  const Eigen::MatrixXd first = graph_diffusion(4, graphs[0]);
  const Eigen::MatrixXd second = graph_diffusion(4, graphs[1]);
  EXPECT_NEAR(sink_fidelities(first, 200).minCoeff(), 1.0 / 3, 1e-15);
  EXPECT_NEAR(sink_fidelities(second, 200).minCoeff(), 3.0 / 8, 1e-15);
  EXPECT_NEAR(sink_fidelities((first + second) / 2, 200).minCoeff(), 37.0 / 144, 1e-15);
}

TEST(WorkedExamples, SubsetErrorsFallByLogTwo) {
  EXPECT_NEAR(subset_error_rate(SampleLaw::uniform, 0.5, 8, 14), std::log(2.0), 0.04);
  // A bound that holds at every m would be passed without the factor sqrt(m).
  EXPECT_GT(std::abs(subset_error_rate(SampleLaw::uniform, 0.5, 1, 2) - std::log(2.0)), 0.04);
  EXPECT_THROW(subset_error_rate(SampleLaw::uniform, 0.5, 8, 8), InvalidInput);
  EXPECT_THROW(subset_error_rate(SampleLaw::uniform, 0.5, 8, 25), InvalidInput);
}

}  // namespace
}  // namespace headlab
