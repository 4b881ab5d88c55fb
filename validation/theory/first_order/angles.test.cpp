// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/first_order/angles.h"

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "validation/diversity/indices.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Two frames in R^4 at given principal cosines.
std::pair<MatrixXd, MatrixXd> frames(double first, double second) {
  MatrixXd w = MatrixXd::Identity(4, 2);
  MatrixXd v = MatrixXd::Zero(4, 2);
  v(0, 0) = first;
  v(2, 0) = std::sqrt(1 - first * first);
  v(1, 1) = second;
  v(3, 1) = std::sqrt(1 - second * second);
  return {w, v};
}

TEST(Angles, OverlapCorrelationIsTheClosedFormAtTheCentre) {
  const auto [w, v] = frames(0.9, 0.3);
  const double rho = overlap_correlation(w, v, VectorXd::Zero(4), 0.4);
  EXPECT_NEAR(rho, overlap({0.9, 0.3}, 0.4), 1e-13);
  EXPECT_GT(std::abs(rho - overlap({0.9, 0.4}, 0.4)), 1e-3);
}

TEST(Angles, OverlapCorrelationIsTheLimitOfExactTheoryOffTheCentre) {
  // n large: first order is exact up to 1/n.
  const double cosine = 0.6;
  MatrixXd w(2, 1);
  MatrixXd v(2, 1);
  w << 1, 0;
  v << cosine, 0.8;
  const VectorXd x = Eigen::Vector2d(1, (-0.5 - cosine) / 0.8);
  const std::uint64_t n = 10000000;
  const double exact = noise_covariance_ratio(cosine, 1, -0.5, 0.5, n) /
                       std::sqrt(noise_covariance_ratio(1, 1, 1, 0.5, n) *
                                 noise_covariance_ratio(1, -0.5, -0.5, 0.5, n));
  EXPECT_NEAR(overlap_correlation(w, v, x, 0.5), exact, 1e-5);
  EXPECT_GT(std::abs(overlap_correlation(w, v, VectorXd::Zero(2), 0.5) - exact), 1e-2);
}

TEST(Angles, CovarianceIncreasesWithTheCosineAtTheCentre) {
  for (const std::uint64_t n : {2u, 10u, 50u}) {
    double last = noise_covariance_ratio(0, 0, 0, 0.5, n);
    EXPECT_NEAR(last, 1, 1e-9);
    for (const double cosine : {0.2, 0.4, 0.6, 0.8, 1.0}) {
      const double ratio = noise_covariance_ratio(cosine, 0, 0, 0.5, n);
      EXPECT_GT(ratio, last + 1e-6);
      EXPECT_NEAR(ratio, noise_covariance_ratio(-cosine, 0, 0, 0.5, n), 1e-9);
      last = ratio;
    }
  }
}

TEST(Angles, CovarianceIsAHermiteSeriesWithNonNegativeTermsAtTheCentre) {
  // n = 2: n C/s2 = n^2 sum_{i,j} cos^(i+j) G_ij^2, G_ij = E[w_1 He_i(U_1) He_j(U_2)]/sqrt(i! j!),
  // on a trapezoid grid.
  const double bandwidth = 0.8;
  constexpr int degree = 40;
  const double step = 0.05;
  std::vector<VectorXd> hermite;  // normalised, times the root of the probability of the point
  std::vector<double> kernel;
  for (double u = -12; u <= 12.001; u += step) {
    VectorXd value(degree + 1);
    value(0) = 1;
    value(1) = u;
    for (int j = 2; j <= degree; ++j) {
      value(j) = (u * value(j - 1) - std::sqrt(j - 1.0) * value(j - 2)) / std::sqrt(double(j));
    }
    hermite.push_back(value * std::exp(-u * u / 2) * step / std::sqrt(2 * std::numbers::pi));
    kernel.push_back(-u * u / (2 * bandwidth * bandwidth));
  }
  MatrixXd coefficients = MatrixXd::Zero(degree + 1, degree + 1);
  for (std::size_t a = 0; a < kernel.size(); ++a) {
    VectorXd over_second = VectorXd::Zero(degree + 1);
    for (std::size_t b = 0; b < kernel.size(); ++b) {
      over_second += hermite[b] / (1 + std::exp(kernel[b] - kernel[a]));
    }
    coefficients += hermite[a] * over_second.transpose();
  }
  const auto series = [&](double cosine, double sign) {
    double sum = 0;
    for (int i = 0; i <= degree; ++i) {
      for (int j = 0; j <= degree; ++j) {
        const double square = coefficients(i, j) * coefficients(i, j);
        sum += 4 * std::pow(cosine, i + j) * square * (i + j > 0 ? sign : 1);
      }
    }
    return sum;
  };
  for (const double cosine : {0.2, 0.5, 0.7}) {
    const double exact = noise_covariance_ratio(cosine, 0, 0, bandwidth, 2);
    EXPECT_NEAR(series(cosine, 1), exact, 1e-8);
    // Negative control: terms of the other sign.
    EXPECT_GT(std::abs(series(cosine, -1) - exact), 1e-3);
  }
}

TEST(Angles, TheTheoremFailsOffTheCentre) {
  const double ratio = noise_covariance_ratio(0.6, 1.5, -1.5, 0.5, 50);
  EXPECT_NEAR(ratio, 0.221, 5e-4);
  EXPECT_NEAR(noise_covariance_ratio(0, 1.5, -1.5, 0.5, 50), 1, 1e-9);
}

TEST(Angles, CovarianceAveragedOverQueriesIncreasesWithTheCosine) {
  const Averaged sixty = query_averaged_covariance_ratio(0.5, 1, 4);
  EXPECT_LT(std::abs(sixty.change), 1e-3);
  EXPECT_GT(sixty.value, 1.01);
}

}  // namespace
}  // namespace headlab
