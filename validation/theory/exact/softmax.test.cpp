// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/softmax.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "validation/diversity/indices.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Mean over x ~ N(0, I) in the plane by the trapezoid rule on +-20.
double query_mean(const std::function<double(const VectorXd&)>& f) {
  const double step = 0.125;
  double sum = 0;
  for (int i = -160; i <= 160; ++i) {
    for (int j = -160; j <= 160; ++j) {
      const VectorXd x = (VectorXd(2) << i * step, j * step).finished();
      sum += step * step * std::exp(-x.squaredNorm() / 2) / (2 * std::numbers::pi) * f(x);
    }
  }
  return sum;
}

MatrixXd projector(double angle) {
  const VectorXd w = (VectorXd(2) << std::cos(angle), std::sin(angle)).finished();
  return w * w.transpose();
}

TEST(SoftmaxForms, AreMeansOverQueries) {
  const double t = 2.1;
  const MatrixXd m = projector(0);
  const MatrixXd other = projector(0.7);
  auto correlation = [&](const VectorXd& x) {
    return softmax_correlation(m * x / t, other * x / t);
  };
  EXPECT_NEAR(mean_correlation(m, other, t), query_mean(correlation), 1e-13);
  EXPECT_NEAR(mean_log_correlation(m, other, t),
              query_mean([&](const VectorXd& x) { return std::log(correlation(x)); }), 1e-13);
  const double c = std::cos(0.7);
  const double covariance =
      query_mean([&](const VectorXd& x) { return std::exp((m * x).dot(other * x) / (t * t)); });
  EXPECT_NEAR(mean_covariance_ratio({c}, t), covariance, 1e-12);
  // Negative controls: another temperature, another angle.
  EXPECT_FALSE(std::abs(mean_covariance_ratio({c}, 2.11) - covariance) <= 1e-4);
  EXPECT_FALSE(std::abs(mean_correlation(m, projector(0.71), t) - query_mean(correlation)) <= 1e-4);
  EXPECT_NEAR(mean_inverse_sample_share(1, t), query_mean([&](const VectorXd& x) {
                return std::exp((m * x).squaredNorm() / t / t);
              }),
              1e-10);
}

TEST(SoftmaxForms, AgreeWithTheIndices) {
  const double t = 1.3;
  const MatrixXd m = projector(0.2);
  const MatrixXd other = projector(1.1);
  const double c = std::cos(0.9);
  EXPECT_NEAR(mean_correlation(m, other, t), query_key_overlap({c}, t), 1e-15);
  EXPECT_NEAR(mean_log_correlation(m, other, t), -(1 - c * c) / (t * t), 1e-15);
  // -HDI at t = sqrt(k): orthogonal heads keep 1/e.
  EXPECT_NEAR(std::exp(mean_log_correlation(projector(0), projector(std::numbers::pi / 2), 1)),
              1 / std::numbers::e, 1e-15);
}

TEST(SoftmaxForms, AreInfiniteBelowTheirTemperature) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(mean_inverse_sample_share(3, 1.414), infinite);
  EXPECT_LT(mean_inverse_sample_share(3, 1.5), infinite);
  EXPECT_EQ(mean_covariance_ratio({0.5}, 0.866), infinite);
  EXPECT_LT(mean_covariance_ratio({0.5}, 0.87), infinite);
  // Both roots negative would give a positive product again.
  EXPECT_EQ(mean_covariance_ratio({1.0}, 0.1), infinite);
  EXPECT_NEAR(mean_covariance_ratio({1, 1}, 3), mean_inverse_sample_share(2, 3), 1e-15);
}

TEST(SoftmaxForms, ShowWhyTheTemperatureIsTheRootOfTheDimension) {
  for (const int k : {1, 4, 64}) {
    EXPECT_NEAR(typical_sample_share(k, std::sqrt(k)), 1 / std::numbers::e, 1e-15);
    EXPECT_NEAR(typical_sample_share(k, 1) / std::exp(-k), 1, 1e-14);
  }
}

TEST(SoftmaxForms, CondenseAboveTheThreshold) {
  const double threshold = condensation_threshold(1000);
  EXPECT_NEAR(threshold, 3.7169221888498383, 1e-15);
  EXPECT_EQ(condensed_squared_weights(1000, 0.99 * threshold), 0);
  EXPECT_NEAR(condensed_squared_weights(1000, 2 * threshold), 0.5, 1e-15);
}

}  // namespace
}  // namespace headlab
