// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/contraction_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <Eigen/Core>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "kernels/decompositions.h"
#include "validation/theory/depth/simplex.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

MatrixXd normals(Eigen::Index rows, Eigen::Index columns, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  MatrixXd a(rows, columns);
  for (double& x : a.reshaped()) x = normal(random);
  return a;
}

double diameter_of(const MatrixXd& x) {
  double largest = 0;
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    largest = std::max(largest, (x.rowwise() - x.row(i)).rowwise().norm().maxCoeff());
  }
  return largest;
}

MatrixXd softmax_rows(MatrixXd logits) {
  logits.colwise() -= logits.rowwise().maxCoeff().eval();
  MatrixXd a = logits.array().exp();
  a.array().colwise() /= a.rowwise().sum().array().eval();
  return a;
}

double norm_of(const MatrixXd& a) {
  return singular_values(a)(0);
}

TEST(ContractionBounds, HoldForRandomStacks) {
  std::mt19937_64 random(3);
  constexpr Eigen::Index n = 6, d = 4;
  double tightest = 0;
  for (int draw = 0; draw < 200; ++draw) {
    const double scale = std::exp(-0.02 * draw);
    const MatrixXd start = scale * normals(n, d, random);
    const double a = draw % 3 * 0.4;
    const RememberingHead head = {.norms = {}, .branch = -0.7, .temperature = 1.3, .memory = a};
    const MatrixXd m = normals(d, d, random);
    const MatrixXd v = 0.5 * normals(d, d, random);
    RememberingHead with = head;
    with.norms = {norm_of(m), norm_of(v)};
    const auto bounds = log_diameter_upper_bounds(with, diameter_of(start), 4);
    const double c = contraction_constant({&with.norms, 1}, with.branch, with.temperature);
    const auto doubly = log_diameter_upper_bounds(c, diameter_of(start), 4);
    MatrixXd x = start, scores;
    for (std::size_t l = 1; l <= 4; ++l) {
      const MatrixXd now = x * m * x.transpose() / with.temperature;
      scores = l == 1 ? now : MatrixXd(a * scores + (1 - a) * now);
      const MatrixXd attention = softmax_rows(scores);
      x = with.branch * attention * x * v;
      EXPECT_LE(diameter_of(x), std::exp(bounds[l]) + 1e-12);
      if (a == 0) {
        EXPECT_LE(diameter_of(x), std::exp(doubly[l]) + 1e-12);
      }
      if (l == 1) tightest = std::max(tightest, diameter_of(x) / std::exp(bounds[l]));
    }
  }
  // Not vacuous.
  EXPECT_GT(tightest, 0.3);
}

TEST(ContractionBounds, AreSharpForTwoAntipodalTokens) {
  const SimplexStack stack = {.n = 2, .rho = 0.4, .query_key = {1.7}, .value = {1.1}, .layers = 9};
  const auto layers = simplex_layers(stack);
  const double diameter = *layers[0].diameter;
  const HeadNorms norms = {1.7, 1.1};
  const auto with_tanh = log_diameter_upper_bounds(RememberingHead{norms}, diameter, 9);
  const auto cubic =
      log_diameter_upper_bounds(contraction_constant({&norms, 1}, 1, 1), diameter, 9);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const double log_diameter = *layers[l].log_residual + std::log(2.0) / 2;
    EXPECT_TRUE(within(with_tanh[l], log_diameter, 1e-12, 1e-12)) << l;
    EXPECT_LE(log_diameter, cubic[l] + 1e-12 * std::abs(cubic[l])) << l;
  }
  // Order three, and no more than a factor off in the exponent.
  EXPECT_LT(with_tanh[9], 2.9 * with_tanh[8]);
  EXPECT_LT(cubic[9] / with_tanh[9], 1);
  EXPECT_GT(cubic[9] / with_tanh[9], 0.5);
}

TEST(ContractionBounds, WithMemoryHoldOnTheSimplex) {
  for (const double a : {0.0, 0.3, 0.6, 1.0}) {
    const auto layers = simplex_layers(
        {.n = 4, .rho = 0.3, .query_key = {1.0}, .value = {1.0}, .layers = 10, .memory = a});
    const auto bounds =
        log_diameter_upper_bounds({.norms = {}, .memory = a}, *layers[0].diameter, 10);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const double log_diameter = *layers[l].log_residual + std::log(2.0 / 3) / 2;
      EXPECT_LE(log_diameter, bounds[l] + 1e-12);
    }
    // Linear in depth for a = 1 alone.
    const double last = bounds[10] - bounds[9];
    const double before = bounds[9] - bounds[8];
    if (a == 1) {
      EXPECT_NEAR(last, before, 1e-12);
    } else {
      EXPECT_LT(last, before - 0.3);
    }
  }
}

TEST(ContractionBounds, AreNumbersInEveryDirection) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(log_diameter_upper_bounds(0, 1, 2)[2], -infinity);
  EXPECT_EQ(log_diameter_upper_bounds(1, 0, 2)[2], -infinity);
  EXPECT_EQ(log_diameter_upper_bounds(1, 1, 4096)[4096], 0);
  EXPECT_EQ(log_diameter_upper_bounds(1, 2, 4096)[4096], infinity);
  EXPECT_EQ(log_diameter_upper_bounds(1, 0.5, 4096)[4096], -infinity);
  for (const double a : {0.0, 0.5, 1.0}) {
    for (const double diameter : {0.0, 1.0, 1e100}) {
      for (const double bound :
           log_diameter_upper_bounds({.norms = {3, 2}, .memory = a}, diameter, 100)) {
        EXPECT_FALSE(std::isnan(bound));
      }
    }
    EXPECT_EQ(log_diameter_upper_bounds({.norms = {0, 2}, .memory = a}, 1, 3)[3], -infinity);
    EXPECT_EQ(log_diameter_upper_bounds({.norms = {2, 0}, .memory = a}, 1, 3)[3], -infinity);
  }
}

TEST(ContractionBounds, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(log_diameter_upper_bounds(std::nan(""), 1, 1), InvalidInput);
  EXPECT_THROW(log_diameter_upper_bounds({.norms = {}, .memory = 2}, 1, 1), InvalidInput);
}

}  // namespace
}  // namespace headlab
