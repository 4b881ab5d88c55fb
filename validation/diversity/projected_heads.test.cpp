// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/projected_heads.h"

#include <cmath>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/scenario/law/subspaces/blocks.h"
#include "engine/scenario/law/subspaces/haar.h"
#include "engine/scenario/mechanism/transform.h"
#include "engine/scenario/subspaces.h"
#include "kernels/kernel_laws.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

const Sizes sizes{.d = 7, .heads = 3, .k = 2, .n = 1};

Subspaces haar_heads() {
  return HaarSubspaces{.seed = 4}.generate(sizes);
}

Subspaces transformed_heads(const std::vector<std::vector<double>>& t) {
  Subspaces heads = haar_heads();
  TransformStage{.matrix = t}.apply(heads);
  return heads;
}

double determinant_of(const MatrixXd& m) {
  return (MatrixXd::Identity(m.rows(), m.cols()) + m).determinant();
}

const Index& named(const std::vector<Index>& all, const std::string& name) {
  for (const Index& one : all) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}

TEST(ProjectedHeads, FramesHaveTheOverlapOfTheirAngles) {
  const Matrices w = to_matrices(haar_heads());
  for (const double b : {1e-3, 0.05, 0.4, 3.0}) {
    const double angles = overlap(principal_cosines(w[0], w[1]), b);
    EXPECT_NEAR(overlap(w[0], w[1], b), angles, 1e-12);
    EXPECT_NEAR(overlap(w[0], w[0], b), 1, 1e-12);
  }
}

TEST(ProjectedHeads, TheOverlapIsOneOfDeterminants) {
  const Matrices w = to_projections(transformed_heads({{1.7, 0.3}, {-0.2, 0.6}}));
  const double b = 0.4;
  const auto a = [&](std::size_t h) { return MatrixXd(w[h] * w[h].transpose() / (b * b)); };
  const double exact = std::pow(determinant_of(2 * a(0)) * determinant_of(2 * a(1)), 0.25) /
                       std::sqrt(determinant_of(a(0) + a(1)));
  EXPECT_NEAR(overlap(w[0], w[1], b), exact, 1e-12);
  EXPECT_GT(std::abs(exact - overlap(principal_cosines(to_matrices(haar_heads())[0],
                                                       to_matrices(haar_heads())[1]),
                                     b)),
            0.01);
}

TEST(ProjectedHeads, HaveTheKnownOverlapAfterTransform) {
  int transforms = 0, mixes = 0;
  for (const auto& known : test::known_cases("mechanisms")) {
    const auto& expected = known["expected"];
    if (known["kind"] == "transform" && expected.contains("overlap_leading")) {
      const auto& t = known["scenario"]["mechanism"]["transform"]["matrix"];
      const MatrixXd scale = Eigen::Vector2d(t[0][0], t[1][1]).asDiagonal();
      const MatrixXd turn{{0, 1}, {1, 0}};
      EXPECT_NEAR(overlap(scale, MatrixXd(turn * scale), 0.25), expected["overlap_leading"], 1e-12);
      ++transforms;
    }
    if (known["kind"] == "mix_cosine") {
      const int heads = known["input"]["H"];
      Subspaces lines({.d = heads, .heads = heads, .k = 1});
      for (int h = 0; h < heads; ++h) lines(h, h, 0) = 1;
      TransformStage{.mix = known["input"]["mix"].get<double>()}.apply(lines);
      const Matrices bases = to_matrices(lines);
      for (int h = 1; h < heads; ++h) {
        EXPECT_NEAR(principal_cosines(bases[0], bases[static_cast<std::size_t>(h)])[0],
                    expected["cosine_of_every_pair"], 1e-9);
      }
      ++mixes;
    }
  }
  EXPECT_EQ(transforms, 1);
  EXPECT_EQ(mixes, 2);
}

TEST(ProjectedHeads, ATransformationLeavesSubspacesAndMovesWindows) {
  const KernelLaw gaussian = GaussianKernel{.bandwidth = 0.4};
  const KernelLaw softmax = SoftmaxKernel{.temperature = 1.3};
  for (const KernelLaw& kernel : {gaussian, softmax}) {
    const bool is_gaussian = std::holds_alternative<GaussianKernel>(kernel);
    const auto plain = head_indices(haar_heads(), kernel, false);
    const auto same =
        subspace_indices(to_matrices(haar_heads()), is_gaussian ? std::optional(0.4) : std::nullopt,
                         is_gaussian ? std::nullopt : std::optional(1.3));
    const Subspaces heads = transformed_heads({{1.7, 0.3}, {-0.2, 0.6}});
    const auto after = head_indices(heads, kernel, false);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(plain[i].value, same[i].value);
      EXPECT_EQ(plain[i].upper_bound, same[i].upper_bound);
      EXPECT_EQ(after[i].name, plain[i].name);
      EXPECT_EQ(after[i].value.has_value(), plain[i].value.has_value());
      if (i < 2) {
        EXPECT_NEAR(*after[i].value, *plain[i].value, 1e-13);
      } else {
        EXPECT_FALSE(after[i].upper_bound);
      }
    }
    EXPECT_GT(std::abs(*after[is_gaussian ? 2 : 3].value - *plain[is_gaussian ? 2 : 3].value),
              0.005);
    // A multiple of an orthogonal matrix is another width: T = c O has bandwidth b/c and
    // temperature t/c^2.
    const double c = 1.4, cosine = std::cos(0.3), sine = std::sin(0.3);
    const Subspaces turned = transformed_heads({{c * cosine, -c * sine}, {c * sine, c * cosine}});
    const KernelLaw width = is_gaussian ? KernelLaw(GaussianKernel{.bandwidth = 0.4 / c})
                                        : KernelLaw(SoftmaxKernel{.temperature = 1.3 / (c * c)});
    const auto wider = head_indices(turned, kernel, false),
               narrow = head_indices(haar_heads(), width, false);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(wider[i].value.has_value(), narrow[i].value.has_value());
      EXPECT_NEAR(wider[i].value.value_or(0), narrow[i].value.value_or(0), 1e-12) << i;
    }
  }
  // qk of one pair by determinants of d x d.
  const Subspaces heads = transformed_heads({{1.7, 0.3}, {-0.2, 0.6}});
  const Matrices w = to_projections(heads);
  double sum = 0;
  for (std::size_t l = 0; l < 2; ++l) {
    for (std::size_t h = l + 1; h < 3; ++h) {
      const MatrixXd difference = w[l] * w[l].transpose() - w[h] * w[h].transpose();
      sum += 1 / std::sqrt(determinant_of(difference * difference / (1.3 * 1.3)));
    }
  }
  EXPECT_NEAR(*named(head_indices(heads, softmax, false), "qk").value, 1 - sum / 3, 1e-12);
  EXPECT_FALSE(named(head_indices(heads, softmax, true), "qk").value);
}

TEST(ProjectedHeads, OfDifferentSizesHaveNoAnglesButAnOverlap) {
  const Sizes three{.d = 7, .heads = 3, .k = 4, .n = 1};
  const Subspaces blocks = BlockSubspaces{.sizes = PerHead{{2, 4, 1}}}.generate(three);
  const double b = 0.4;
  const auto indices = head_indices(blocks, GaussianKernel{.bandwidth = b}, false);
  EXPECT_FALSE(named(indices, "chordal").value);
  EXPECT_FALSE(named(indices, "spectral").value);
  // At right angles the correlation is a product over all directions of both heads.
  const double factor = std::pow(1 + 2 / (b * b), 0.25) / std::sqrt(1 + 1 / (b * b));
  const double mean = (std::pow(factor, 6) + std::pow(factor, 3) + std::pow(factor, 5)) / 3;
  EXPECT_NEAR(*named(indices, "overlap").value, 1 - mean, 1e-12);
  // A singular transformation leaves lines, which have an angle again.
  const auto lines =
      head_indices(transformed_heads({{1, 0}, {0, 0}}), GaussianKernel{.bandwidth = b}, false);
  const Matrices w = to_matrices(haar_heads());
  const Matrices first{w[0].leftCols(1), w[1].leftCols(1), w[2].leftCols(1)};
  EXPECT_NEAR(*named(lines, "chordal").value, *chordal_index(first).value, 1e-13);
  EXPECT_NEAR(*named(lines, "overlap").value, *subspace_indices(first, b, {})[2].value, 1e-12);
}

}  // namespace
}  // namespace headlab
