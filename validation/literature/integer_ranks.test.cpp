// SPDX-License-Identifier: Apache-2.0
#include "validation/literature/integer_ranks.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "kernels/decompositions.h"
#include "validation/literature/stack_examples.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {

namespace {

using nlohmann::json;

IntegerMatrix random_integers(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  IntegerMatrix a(rows, columns);
  for (std::int64_t& x : a.reshaped()) x = static_cast<std::int64_t>(random() % 2001) - 1000;
  return a;
}

/// Tokens with three decimals, in thousandths.
IntegerMatrix thousandths(const json& rows) {
  return (1000 * matrix_from(rows)).array().round().matrix().cast<std::int64_t>();
}

TEST(IntegerRanks, AgreeWithTheKnownAnswers) {
  for (const json& known : depth_cases("layer_norm_ranks")) {
    const IntegerMatrix x = thousandths(known["inputs"]["X"]);
    const json& expected = known["expected"];
    EXPECT_EQ(exact_rank(x), expected["rank"].get<int>());
    EXPECT_EQ(normed_ranks(x, NormKind::layer).before, expected["affine_rank"].get<int>());
    EXPECT_EQ(normed_ranks(x, NormKind::layer).after, expected["affine_rank_after"].get<int>());
    EXPECT_EQ(normed_ranks(x, NormKind::rms).after, expected["affine_rank_after_rms"].get<int>());
  }
}

TEST(IntegerRanks, CountWhatIsIndependent) {
  EXPECT_EQ(exact_rank(IntegerMatrix::Zero(3, 4)), 0);
  EXPECT_EQ(exact_rank(random_integers(6, 9, 1)), 6);
  IntegerMatrix product = random_integers(12, 4, 2) * random_integers(4, 10, 3);
  EXPECT_EQ(exact_rank(product), 4);
  // One part in 1e9, which a cut among singular values would not see.
  product(7, 3) += 1;
  EXPECT_EQ(exact_rank(product), 5);
  // A zero column in front, and equal rows.
  IntegerMatrix a(3, 3);
  a << 0, 1, 2, 0, 1, 2, 0, 3, 7;
  EXPECT_EQ(exact_rank(a), 2);
  EXPECT_EQ(exact_rank(IntegerMatrix(0, 3)), 0);
}

TEST(IntegerRanks, LayerNormDoesWhatTheCounterexampleSays) {
  // On a ray: 0 at epsilon 0 and 1 otherwise.
  IntegerMatrix ray(3, 3);
  ray << 1, 0, -1, 2, 0, -2, 3, 0, -3;
  EXPECT_EQ(normed_ranks(ray, NormKind::layer).after, 0);
  EXPECT_EQ(normed_ranks(ray, NormKind::layer, {1, 100000}).after, 1);
  // On both sides of the origin: x/|x| takes two values.
  ray.row(2) *= -1;
  EXPECT_EQ(normed_ranks(ray, NormKind::layer).after, 1);
  // A token equal to its mean becomes 0, which is off the ray.
  ray.row(2).setConstant(4);
  EXPECT_EQ(normed_ranks(ray, NormKind::layer).after, 1);
}

/// The affine rank after layer norm of tokens in plain arithmetic, by a cut.
int plain_affine_rank(const IntegerMatrix& tokens, double epsilon) {
  Eigen::MatrixXd x = tokens.cast<double>();
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    x.row(i).array() -= x.row(i).mean();
    x.row(i) /= std::sqrt(x.row(i).squaredNorm() / static_cast<double>(x.cols()) + epsilon);
  }
  x.rowwise() -= x.colwise().mean().eval();
  const Eigen::Index size = std::max(x.rows(), x.cols());
  Eigen::MatrixXd square = Eigen::MatrixXd::Zero(size, size);
  square.topLeftCorner(x.rows(), x.cols()) = x;
  const Eigen::VectorXd values = singular_values(square);
  return static_cast<int>((values.array() > 1e-9 * std::max(values(0), 1.0)).count());
}

TEST(IntegerRanks, AgreeWithPlainArithmeticAfterANorm) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    // Ranks 1 to 3 of 5 features, 2 to 6 tokens, of few integers so that roots share classes.
    const Eigen::Index n = 2 + static_cast<Eigen::Index>(seed % 5);
    const Eigen::Index r = 1 + static_cast<Eigen::Index>(seed / 5 % 3);
    const IntegerMatrix left =
        random_integers(n, r, seed).unaryExpr([](std::int64_t a) { return a % 3; });
    const IntegerMatrix right =
        random_integers(r, 5, seed + 100).unaryExpr([](std::int64_t a) { return a % 2; });
    const IntegerMatrix x = left * right;
    for (const std::int64_t numerator : {0, 1}) {
      const NormedRanks ranks = normed_ranks(x, NormKind::layer, {numerator, 2});
      const bool has_zero = (x.cast<double>().colwise() - x.cast<double>().rowwise().mean())
                                .rowwise()
                                .norm()
                                .minCoeff() == 0;
      if (numerator == 0 && has_zero) continue;  // 0/0
      EXPECT_EQ(ranks.after, plain_affine_rank(x, 0.5 * static_cast<double>(numerator))) << x;
    }
  }
}

TEST(IntegerRanks, ImagesOfRowsStayInTheirSpan) {
  const IntegerMatrix x = random_integers(6, 2, 8) * random_integers(2, 5, 9);
  EXPECT_EQ(dimensions_outside_span(x, random_integers(4, 6, 10) * x), 0);
  EXPECT_EQ(dimensions_outside_span(x, random_integers(1, 5, 11)), 1);
}

TEST(IntegerRanks, TheMlpIsAnIntegerOne) {
  IntegerMatrix x(2, 2), input(2, 2), output(2, 2), expected(2, 2);
  x << 1, 2, -3, 4;
  input << 1, -1, 0, 2;
  output << 1, 0, 1, 1;
  const Eigen::Matrix<std::int64_t, 1, Eigen::Dynamic> bias =
      (Eigen::Matrix<std::int64_t, 1, Eigen::Dynamic>(2) << 1, -4).finished();
  // Units (2, -1) and (-2, 7), relu, through the output.
  expected << 1 + 2, 2, -3 + 7, 4 + 7;
  EXPECT_EQ(integer_mlp(x, input, bias, output), expected);
  EXPECT_THROW(integer_mlp(x, random_integers(3, 2, 1), bias, output), InvalidInput);
  EXPECT_THROW(integer_mlp(1000000000 * x, 1000000000 * input, bias, output), InvalidInput);
}

TEST(IntegerRanks, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(dimensions_outside_span(IntegerMatrix::Ones(2, 2), IntegerMatrix::Ones(2, 3)),
               InvalidInput);
  EXPECT_THROW(normed_ranks(IntegerMatrix(0, 3), NormKind::layer), InvalidInput);
  EXPECT_THROW(normed_ranks(IntegerMatrix::Ones(2, 2), NormKind::none), InvalidInput);
  EXPECT_THROW(normed_ranks(IntegerMatrix::Ones(2, 2), NormKind::layer, {-1, 1}), InvalidInput);
  EXPECT_THROW(normed_ranks(IntegerMatrix::Ones(2, 2), NormKind::layer, {1, 0}), InvalidInput);
}

}  // namespace

namespace {

using nlohmann::json;

TEST(SubsetSums, AgreeWithTheKnownAnswers) {
  for (const json& known : depth_cases("subset_sum")) {
    const double z = known["inputs"]["z"], eps = known["inputs"]["eps"];
    const json& expected = known["expected"];
    const auto count = static_cast<int>(known["inputs"]["x"].size());
    const auto agrees = [&](double hits) {
      return within(hits, expected["expected_hits_uniform"], known["tolerance"]);
    };
    EXPECT_TRUE(agrees(expected_subset_hits(count, z, eps)));
    // Negative controls.
    EXPECT_FALSE(agrees(expected_subset_hits(count + 1, z, eps)));
    EXPECT_FALSE(agrees(expected_subset_hits(count, z, eps * (1 + 1e-7))));
  }
}

TEST(SubsetSums, ExpectedHitsAreThoseByHand) {
  EXPECT_EQ(expected_subset_hits(0, 0, 0.1), 1);
  EXPECT_EQ(expected_subset_hits(0, 0.2, 0.1), 0);
  // One uniform: 1/2 times 2 eps within (-1, 1), half of it at the end.
  EXPECT_NEAR(expected_subset_hits(1, 0.5, 0.1), 0.1, 1e-15);
  EXPECT_NEAR(expected_subset_hits(1, 1, 0.1), 0.05, 1e-15);
  // Two: the triangle (2 - |s|)/4.
  EXPECT_NEAR(expected_subset_hits(2, 0.5, 0.1), 2 * 0.1 + 0.2 * 1.5 / 4, 1e-15);
  // Every subset of ten is somewhere.
  EXPECT_NEAR(expected_subset_hits(10, 0, 20), 1024, 1e-9);
  EXPECT_NEAR(expected_subset_hits(30, 0, 40) / 1073741824, 1, 1e-12);
}

TEST(SubsetSums, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(expected_subset_hits(31, 0, 1), InvalidInput);
  EXPECT_THROW(expected_subset_hits(3, 0, 0), InvalidInput);
}

}  // namespace

}  // namespace headlab
