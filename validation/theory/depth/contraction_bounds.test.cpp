// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/contraction_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "kernels/decompositions.h"
#include "validation/theory/depth/simplex.h"
#include "validation/theory/depth/testing/known_answers.h"
#include "validation/theory/depth/testing/small_residual.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

MatrixXd normals(Eigen::Index rows, Eigen::Index columns, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  MatrixXd a(rows, columns);
  for (double& x : a.reshaped()) x = normal(random);
  return a;
}

/// Largest of f(i, j) over pairs of rows.
template <class F>
double largest_of_pairs(Eigen::Index n, const F& f) {
  double largest = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < i; ++j) largest = std::max(largest, f(i, j));
  }
  return largest;
}

double diameter_of(const MatrixXd& x) {
  return largest_of_pairs(
      x.rows(), [&](Eigen::Index i, Eigen::Index j) { return (x.row(i) - x.row(j)).norm(); });
}

double dobrushin_of(const MatrixXd& a) {
  return largest_of_pairs(a.rows(), [&](Eigen::Index i, Eigen::Index j) {
    return (a.row(i) - a.row(j)).cwiseAbs().sum() / 2;
  });
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
      const double tau = dobrushin_of(attention);
      const double before = diameter_of(x);
      if (a == 0) {
        EXPECT_LE(tau,
                  dobrushin_upper_bound(with.norms.query_key, before, with.temperature) + 1e-12);
      }
      const MatrixXd image = with.branch * attention * x * v;
      EXPECT_LE(
          diameter_of(image),
          layer_diameter_upper_bound({0, with.branch, {tau}, {with.norms.value}}, before) + 1e-12);
      const ContractingLayer skipping = {1.5, with.branch, {tau}, {with.norms.value}};
      EXPECT_GE(diameter_of(1.5 * x + image) + 1e-12, layer_diameter_lower_bound(skipping, before));
      EXPECT_LE(diameter_of(1.5 * x + image), layer_diameter_upper_bound(skipping, before) + 1e-12);
      x = image;
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
  EXPECT_NEAR(*layers[1].dobrushin, dobrushin_upper_bound(1.7, diameter, 1), 1e-15);
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
  EXPECT_THROW(dobrushin_upper_bound(-1, 1, 1), InvalidInput);
  EXPECT_THROW(dobrushin_upper_bound(1, 1, 0), InvalidInput);
  EXPECT_THROW(layer_diameter_upper_bound({1, 1, {1.1}, {1}}, 1), InvalidInput);
  EXPECT_THROW(layer_diameter_upper_bound({1, 1, {0.5}, {}}, 1), InvalidInput);
  EXPECT_THROW(log_diameter_upper_bounds(std::nan(""), 1, 1), InvalidInput);
  EXPECT_THROW(log_diameter_upper_bounds({.norms = {}, .memory = 2}, 1, 1), InvalidInput);
}

TEST(SmallResidual, IsCubic) {
  const nlohmann::json known = depth_cases("cubic_energy").at(0);
  MatrixXd x = matrix_from(known["inputs"]["X"]);
  const double expected = known["expected"]["residual_squared_over_n"];
  // The closed form itself has the digits of the file.
  EXPECT_TRUE(within_digits(cubic_residual_energy(x), expected));
  x(0, 0) += 1e-4;
  EXPECT_FALSE(within_digits(cubic_residual_energy(x), expected));
  EXPECT_NEAR(cubic_residual_energy(2 * x) / cubic_residual_energy(x), 64, 1e-10);
}

}  // namespace
}  // namespace headlab
