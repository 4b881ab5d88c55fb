// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/model/integrable.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <gtest/gtest.h>

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Plain = std::function<double(const VectorXd&)>;

/// E m and E m^2 for X ~ N(mean, L L^T) in the plane by the trapezoid rule in L^-1 (x - mean) on
/// +-10, which is exact to rounding for functions as smooth as these.
FunctionMoments by_quadrature(const Plain& m, const GaussianLaw& law) {
  const MatrixXd root = law.covariance.llt().matrixL();
  const double step = 0.125;
  FunctionMoments moments;
  for (int i = -80; i <= 80; ++i) {
    for (int j = -80; j <= 80; ++j) {
      const VectorXd z = (VectorXd(2) << i * step, j * step).finished();
      const double weight = step * step * std::exp(-z.squaredNorm() / 2) / (2 * std::numbers::pi);
      const double value = m(law.mean + root * z);
      moments.mean += weight * value;
      moments.mean_square += weight * value * value;
    }
  }
  return moments;
}

/// Both moments agree to rounding; NaN does not.
bool agrees(const FunctionMoments& a, const FunctionMoments& b) {
  const double scale = 1 + std::abs(b.mean) + std::abs(b.mean_square);
  return std::abs(a.mean - b.mean) <= 1e-12 * scale &&
         std::abs(a.mean_square - b.mean_square) <= 1e-12 * scale;
}

GaussianLaw some_law() {
  GaussianLaw law{VectorXd(2), MatrixXd(2, 2)};
  law.mean << 0.3, -0.7;
  law.covariance << 1.2, 0.5, 0.5, 0.8;
  return law;
}

const VectorXd direction = (VectorXd(2) << 0.7, -0.4).finished();

/// A function both ways.
struct Case {
  const char* name;
  std::shared_ptr<const IntegrableFunction> function;
  Plain plain;
};

std::vector<Case> cases() {
  const VectorXd amplitude = (VectorXd(3) << 1, -0.5, 0.3).finished();
  const MatrixXd frequency = (MatrixXd(3, 2) << 1, 0.4, -0.7, 1.9, 0, 0).finished();
  const VectorXd phase = (VectorXd(3) << 0.3, -1.1, 2).finished();
  const VectorXd linear = (VectorXd(2) << 0.6, -1.3).finished();
  const MatrixXd quadratic = (MatrixXd(2, 2) << 0.4, 1, -0.2, -0.6).finished();
  const MatrixXd centre = (MatrixXd(2, 2) << 0.5, -1, -0.4, 0.2).finished();
  const VectorXd height = (VectorXd(2) << 1.5, -0.7).finished();
  const VectorXd rate = (VectorXd(2) << 1.6, 0.4).finished();
  return {
      {"cosines", std::make_shared<CosineSumFunction>(amplitude, frequency, phase),
       [=](const VectorXd& x) {
         return amplitude.dot(((frequency * x + phase).array().cos()).matrix());
       }},
      {"polynomial", std::make_shared<PolynomialFunction>(0.9, linear, quadratic),
       [=](const VectorXd& x) { return 0.9 + linear.dot(x) + x.dot(quadratic * x); }},
      {"bumps", std::make_shared<BumpSumFunction>(height, centre, rate), [=](const VectorXd& x) {
         double sum = 0;
         for (Eigen::Index j = 0; j < 2; ++j) {
           const VectorXd away = x - centre.row(j).transpose();
           sum += height(j) * std::exp(-rate(j) * away.squaredNorm() / 2);
         }
         return sum;
       }}};
}

TEST(IntegrableFunction, HasTheMomentsOfAQuadrature) {
  const GaussianLaw law = some_law();
  for (const Case& c : cases()) {
    const FunctionMoments closed = c.function->moments(law);
    EXPECT_TRUE(agrees(closed, by_quadrature(c.plain, law))) << c.name;
    // Negative controls: another mean, another covariance, a function a little off.
    GaussianLaw other = law;
    other.mean(1) += 1e-6;
    EXPECT_FALSE(agrees(closed, by_quadrature(c.plain, other))) << c.name;
    other = law;
    other.covariance(0, 1) = other.covariance(1, 0) = 0.5 + 1e-6;
    EXPECT_FALSE(agrees(closed, by_quadrature(c.plain, other))) << c.name;
    const Plain off = [&](const VectorXd& x) { return c.plain(x) + 1e-9; };
    EXPECT_FALSE(agrees(closed, by_quadrature(off, law))) << c.name;
  }
  EXPECT_FALSE(agrees({std::nan(""), 0}, {0, 0}));
}

TEST(IntegrableFunction, IsItselfUnderALawWithoutSpread) {
  const GaussianLaw point{some_law().mean, MatrixXd::Zero(2, 2)};
  for (const Case& c : cases()) {
    const double m = c.plain(point.mean);
    EXPECT_TRUE(agrees(c.function->moments(point), {m, m * m})) << c.name;
  }
}

TEST(IntegrableFunction, MovesAlongASlope) {
  const GaussianLaw base = some_law();
  const MatrixXd slope = (MatrixXd(2, 3) << 1, 0.2, -0.4, 0, -1.5, 0.7).finished();
  std::vector<Case> all = cases();
  all.push_back({"scale", std::make_shared<FoldedScaleFunction>(0.5, 0.8, direction), {}});
  for (const Case& c : all) {
    const auto along = c.function->along(base, slope);
    for (const double z0 : {0.0, -2.0, 0.9}) {
      const VectorXd z = (VectorXd(3) << z0, 0.5, -z0 / 2).finished();
      const GaussianLaw moved{base.mean + slope * z, base.covariance};
      EXPECT_TRUE(agrees((*along)(z), c.function->moments(moved))) << c.name;
      EXPECT_FALSE(agrees((*along)(z), c.function->moments({moved.mean, 1.001 * base.covariance})))
          << c.name;
    }
  }
}

TEST(IntegrableFunction, SurvivesWildFrequenciesAndNarrowBumps) {
  const GaussianLaw law = some_law();
  const VectorXd one = VectorXd::Ones(1);
  const CosineSumFunction fast(one, MatrixXd::Constant(1, 2, 1e6), VectorXd::Zero(1));
  EXPECT_EQ(fast.moments(law).mean, 0);
  EXPECT_NEAR(fast.moments(law).mean_square, 0.5, 1e-15);
  // A bump of width w: 2 pi w^2 times the density at its centre.
  const double rate = 1e12;
  const BumpSumFunction narrow(one, law.mean.transpose(), one * rate);
  const double density = 1 / std::sqrt(law.covariance.determinant());
  EXPECT_NEAR(narrow.moments(law).mean * rate / density, 1, 1e-9);
  EXPECT_NEAR(narrow.moments(law).mean_square * 2 * rate / density, 1, 1e-9);
}

/// E g(|T|) for T ~ N(a, tau^2) by Simpson's rule, folded at the kink.
FunctionMoments folded_by_quadrature(double sd, double growth, double a, double tau) {
  const int steps = 8000;
  const double top = std::abs(a) + 12 * tau;
  const double step = top / steps;
  FunctionMoments moments;
  for (int i = 0; i <= steps; ++i) {
    const double t = i * step;
    auto normal = [&](double u) {
      return std::exp(-u * u / (2 * tau * tau)) / (tau * std::sqrt(2 * std::numbers::pi));
    };
    const double share = step / 3 * (i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2);
    const double weight = share * (normal(t - a) + normal(t + a));
    const double value = std::pow(sd * (1 + growth * t), 2);
    moments.mean += weight * value;
    moments.mean_square += weight * value * value;
  }
  return moments;
}

TEST(FoldedScale, HasTheMomentsOfAQuadrature) {
  GaussianLaw law = some_law();
  const double tau = std::sqrt(direction.dot(law.covariance * direction));
  const FoldedScaleFunction scale(0.5, 0.8, direction);
  for (const double shift : {-3.0, 0.0, 0.4}) {
    law.mean(0) = shift;
    const double a = direction.dot(law.mean);
    EXPECT_TRUE(agrees(scale.moments(law), folded_by_quadrature(0.5, 0.8, a, tau)));
    EXPECT_FALSE(agrees(scale.moments(law), folded_by_quadrature(0.5, 0.8001, a, tau)));
  }
  const GaussianLaw point{law.mean, MatrixXd::Zero(2, 2)};
  const double s2 = std::pow(0.5 * (1 + 0.8 * std::abs(direction.dot(law.mean))), 2);
  EXPECT_TRUE(agrees(scale.moments(point), {s2, s2 * s2}));
}

}  // namespace
}  // namespace headlab
