// SPDX-License-Identifier: Apache-2.0
#include "validation/search/predict.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"

namespace headlab {
namespace {

testing::AssertionResult close(double value, double expected, double tolerance) {
  return (std::abs(value - expected) <= tolerance ? testing::AssertionSuccess()
                                                  : testing::AssertionFailure())
         << value << " against " << expected;
}

std::vector<double> roots(std::vector<double> squares) {
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

TEST(Predict, GaussianFactorOverThatOfAlignedHeadsIsTheOverlap) {
  const auto answers = nlohmann::json::parse(std::ifstream(test::known_answers()));
  for (const auto& known : answers.at("overlap")) {
    const auto cosines = roots(known.at("cos2").get<std::vector<double>>());
    const double bandwidth = known.at("bandwidth");
    const double pair = gaussian_noise_factor(cosines, bandwidth, 100).value;
    const double own =
        gaussian_noise_factor(std::vector(cosines.size(), 1.0), bandwidth, 100).value;
    EXPECT_TRUE(close(pair / own, known.at("rho"), 1e-12));
    EXPECT_FALSE(close(pair / own, overlap(cosines, 1.01 * bandwidth), 1e-12));
  }
}

TEST(Predict, OrthogonalHeadsHaveFactorOneAtEveryOrder) {
  // Noise covariance is exactly s^2/n (claim `angles`, form `floor`).
  const Remainder form = gaussian_noise_factor({0, 0}, 0.3, 50);
  EXPECT_TRUE(close(form.value, 1, 1e-12));
  EXPECT_TRUE(close(form.remainder, 0, 1e-12));
  EXPECT_FALSE(close(gaussian_noise_factor({0, 0.1}, 0.3, 50).remainder, 0, 1e-12));
  EXPECT_TRUE(close(softmax_noise_factor({0, 0}, 2).value, 1, 1e-12));
}

TEST(Predict, RemainderExplainsTheExactVarianceUpToItsSquare) {
  const auto answers = nlohmann::json::parse(std::ifstream(test::known_answers()));
  int compared = 0, faulty = 0;
  for (const auto& known : answers.at("finite_n_noise")) {
    if (known.at("query_projection") != nlohmann::json({0, 0})) continue;
    const std::uint64_t n = known.at("n");
    const Remainder form =
        gaussian_noise_factor({known.at("cos_angle").get<double>()}, known.at("bandwidth"), n);
    const double exact = static_cast<double>(n) * known.at("C").get<double>();
    // What is left is the third order.
    EXPECT_TRUE(close(form.value * (1 + form.remainder), exact,
                      5 * exact * form.remainder * form.remainder + 1e-9));
    // Negative control: the remainder with its sign turned.
    if (std::abs(form.value * (1 - form.remainder) - exact) >
        5 * exact * form.remainder * form.remainder + 1e-9) {
      ++faulty;
    }
    ++compared;
  }
  EXPECT_GE(compared, 2);
  EXPECT_GE(faulty, 1);
}

TEST(Predict, SoftmaxFactorIsTheMeanOverNormalQueries) {
  // A pair at cosine c: a_h.a_l = c u v / t^2, (u, v) standard normal with correlation c.
  const double c = 0.6, temperature = 3;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  double sum = 0, squares = 0;
  const int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    const double u = normal(random), v = c * u + std::sqrt(1 - c * c) * normal(random);
    const double one = std::exp(c * u * v / (temperature * temperature));
    sum += one, squares += one * one;
  }
  const double mean = sum / draws, error = std::sqrt((squares / draws - mean * mean) / draws);
  EXPECT_TRUE(close(softmax_noise_factor({c}, temperature).value, mean, 5 * error));
  EXPECT_FALSE(close(softmax_noise_factor({0.9}, temperature).value, mean, 5 * error));
  // THEORY: k = 3, t^2 = 3.
  const double third = 1.0 / 3;
  EXPECT_TRUE(close(softmax_noise_factor(roots({.95, 0, 0}), std::sqrt(3.0)).value, 1.663, 6e-4));
  EXPECT_TRUE(
      close(softmax_noise_factor(roots({third, third, third}), std::sqrt(3.0)).value, 1.530, 6e-4));
  EXPECT_THROW(softmax_noise_factor({0.5}, 1.4), std::invalid_argument);
}

TEST(Predict, EnsembleIsTheMeanOverAllPairs) {
  const HeadSet set = head_sets({3, 2, 6}, 1).back();
  const Matrices subspaces = set.subspaces();
  const GaussianKernel kernel{.bandwidth = 0.5};
  double sum = 0, wrong = 0;
  for (const auto& a : subspaces) {
    for (const auto& b : subspaces) {
      const double factor = gaussian_noise_factor(principal_cosines(a, b), 0.5, 100).value;
      sum += factor / 9;
      if (&a <= &b) wrong += factor / 6;
    }
  }
  EXPECT_TRUE(close(noise_factor(subspaces, kernel, 100).value, sum, 1e-9));
  EXPECT_FALSE(close(noise_factor(subspaces, kernel, 100).value, wrong, 1e-9));
  EXPECT_THROW(noise_factor(subspaces, LaplaceKernel{.bandwidth = 1}, 100), std::invalid_argument);
}

TEST(Predict, IndicesGoByTheirNames) {
  const Matrices subspaces = head_sets({2, 2, 4}, 1).back().subspaces();
  const GaussianKernel kernel{.bandwidth = 0.5};
  EXPECT_EQ(index_of("chordal", subspaces, kernel), chordal_index(subspaces).value);
  EXPECT_EQ(index_of("overlap", subspaces, kernel), overlap_index(subspaces, 0.5).value);
  EXPECT_THROW(index_of("qk", subspaces, kernel), std::invalid_argument);
  EXPECT_THROW(index_of("cordal", subspaces, kernel), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
