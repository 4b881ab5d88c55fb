// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/model/integrable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "kernels/decompositions.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// E m and E m^2 of a sum of cosines. With theta_j = frequency_j.mean + phase_j, and the means of
/// cos(theta_j - theta_l) and cos(theta_j + theta_l) written in cosines and sines of each theta,
/// E m^2 = c^T even c + s^T odd s.
class CosineSumMoments : public ConditionalMoments {
 public:
  VectorXd damped;  ///< [J] amplitude_j exp(-u_j^T S u_j/2)
  VectorXd phase;   ///< [J] at z = 0
  MatrixXd slope;   ///< [J][columns]
  MatrixXd even;    ///< [J][J]
  MatrixXd odd;     ///< [J][J]

  FunctionMoments operator()(const VectorXd& z) const override {
    const Eigen::ArrayXd theta = phase + slope * z;
    const VectorXd c = theta.cos();
    const VectorXd s = theta.sin();
    return {damped.dot(c), c.dot(even * c) + s.dot(odd * s)};
  }
};

/// c0 + linear.z + z^T square z.
struct Quadratic {
  double constant = 0;
  VectorXd linear;
  MatrixXd square;
  double operator()(const VectorXd& z) const {
    return constant + linear.dot(z) + z.dot(square * z);
  }
};

class PolynomialMoments : public ConditionalMoments {
 public:
  Quadratic mean;
  Quadratic variance;

  FunctionMoments operator()(const VectorXd& z) const override {
    const double m = mean(z);
    const double v = variance(z);
    return {m, m * m + v, v};
  }
};

class BumpSumMoments : public ConditionalMoments {
 public:
  /// factor exp(exponent(z)).
  struct Term {
    double factor = 0;
    Quadratic exponent;
  };
  std::vector<Term> mean;
  std::vector<Term> mean_square;

  FunctionMoments operator()(const VectorXd& z) const override {
    return {sum(mean, z), sum(mean_square, z)};
  }

 private:
  static double sum(const std::vector<Term>& terms, const VectorXd& z) {
    double total = 0;
    for (const Term& term : terms) total += term.factor * std::exp(term.exponent(z));
    return total;
  }
};

class FoldedScaleMoments : public ConditionalMoments {
 public:
  double sd = 0;
  double growth = 0;
  double tau = 0;       ///< standard deviation of T = direction.X
  double location = 0;  ///< its mean at z = 0
  VectorXd slope;       ///< [columns]

  FunctionMoments operator()(const VectorXd& z) const override {
    const double a = location + slope.dot(z);
    const double variance = tau * tau;
    // Without spread |T| is |a|: the formulas' limit.
    const double sign = tau > 0 ? std::erf(a / (tau * std::numbers::sqrt2)) : (a < 0 ? -1.0 : 1.0);
    const double peak =
        tau > 0 ? tau * std::sqrt(2 / std::numbers::pi) * std::exp(-a * a / (2 * variance)) : 0.0;
    const double t1 = peak + a * sign;
    const double t2 = a * a + variance;
    const double t3 = (a * a + 2 * variance) * peak + a * (a * a + 3 * variance) * sign;
    const double t4 = a * a * a * a + 6 * a * a * variance + 3 * variance * variance;
    const double g = growth;
    const double s2 = sd * sd;
    return {s2 * (1 + 2 * g * t1 + g * g * t2),
            s2 * s2 * (1 + 4 * g * t1 + 6 * g * g * t2 + 4 * g * g * g * t3 + g * g * g * g * t4)};
  }
};

}  // namespace

double FunctionMoments::product_rounding(double a, double b) const {
  // A few operations on numbers of this size.
  constexpr double unit = 4 * std::numeric_limits<double>::epsilon();
  const double size = std::max({std::abs(mean), std::abs(a), std::abs(b)});
  if (!variance) return unit * (mean_square + size * size);
  const double of_mean = unit * size;
  return of_mean * (std::abs(mean - a) + std::abs(mean - b) + of_mean) + unit * *variance;
}

std::unique_ptr<ConditionalMoments> IntegrableFunction::along_pair(const GaussianLaw&,
                                                                   const MatrixXd&,
                                                                   const MatrixXd&) const {
  return nullptr;
}

FunctionMoments IntegrableFunction::moments(const GaussianLaw& law) const {
  return (*along(law, MatrixXd(law.mean.size(), 0)))(VectorXd(0));
}

CosineSumFunction::CosineSumFunction(VectorXd amplitude, MatrixXd frequency, VectorXd phase)
    : amplitude_(std::move(amplitude)),
      frequency_(std::move(frequency)),
      phase_(std::move(phase)) {}

std::unique_ptr<ConditionalMoments> CosineSumFunction::along(const GaussianLaw& base,
                                                             const MatrixXd& slope) const {
  return along_pair(base, base.covariance, slope);
}

std::unique_ptr<ConditionalMoments> CosineSumFunction::along_pair(const GaussianLaw& base,
                                                                  const MatrixXd& cross,
                                                                  const MatrixXd& slope) const {
  auto moments = std::make_unique<CosineSumMoments>();
  const Index terms = amplitude_.size();
  const MatrixXd inner = frequency_ * cross * frequency_.transpose();
  const VectorXd own = (frequency_ * base.covariance).cwiseProduct(frequency_).rowwise().sum();
  moments->damped = amplitude_.array() * (-own.array() / 2).exp();
  moments->phase = frequency_ * base.mean + phase_;
  moments->slope = frequency_ * slope;
  moments->even.resize(terms, terms);
  moments->odd.resize(terms, terms);
  for (Index j = 0; j < terms; ++j) {
    for (Index l = 0; l <= j; ++l) {
      // The exponents are added first: neither alone need be in range.
      const double half = (own(j) + own(l)) / 2;
      const double difference = std::exp(inner(j, l) - half);
      const double sum = std::exp(-inner(j, l) - half);
      const double amplitudes = amplitude_(j) * amplitude_(l) / 2;
      moments->even(j, l) = moments->even(l, j) = amplitudes * (difference + sum);
      moments->odd(j, l) = moments->odd(l, j) = amplitudes * (difference - sum);
    }
  }
  return moments;
}

PolynomialFunction::PolynomialFunction(double constant, VectorXd linear, const MatrixXd& quadratic)
    : constant_(constant),
      linear_(std::move(linear)),
      quadratic_((quadratic + quadratic.transpose()) / 2) {}

PolynomialFunction::PolynomialFunction(double constant, const VectorXd& linear)
    : PolynomialFunction(constant, linear, MatrixXd::Zero(linear.size(), linear.size())) {}

std::unique_ptr<ConditionalMoments> PolynomialFunction::along(const GaussianLaw& base,
                                                              const MatrixXd& slope) const {
  return along_pair(base, base.covariance, slope);
}

std::unique_ptr<ConditionalMoments> PolynomialFunction::along_pair(const GaussianLaw& base,
                                                                   const MatrixXd& cross,
                                                                   const MatrixXd& slope) const {
  // Around its mean mu, m = m(mu) + g.y + y^T G y with y ~ N(0, S) and g = linear + 2 G mu:
  // E m = m(mu) + tr(G S), and Cov(m, m') = g^T Q g + 2 tr(G Q G Q) at Cov(y, y') = Q.
  auto moments = std::make_unique<PolynomialMoments>();
  const MatrixXd& s = cross;
  const MatrixXd turned = quadratic_ * s;
  const VectorXd gradient = linear_ + 2 * quadratic_ * base.mean;
  const MatrixXd gradient_slope = 2 * quadratic_ * slope;
  moments->mean = {.constant = constant_ + linear_.dot(base.mean) +
                               base.mean.dot(quadratic_ * base.mean) +
                               (quadratic_ * base.covariance).trace(),
                   .linear = slope.transpose() * gradient,
                   .square = slope.transpose() * quadratic_ * slope};
  moments->variance = {.constant = gradient.dot(s * gradient) + 2 * (turned * turned).trace(),
                       .linear = 2 * gradient_slope.transpose() * (s * gradient),
                       .square = gradient_slope.transpose() * s * gradient_slope};
  return moments;
}

BumpSumFunction::BumpSumFunction(VectorXd height, MatrixXd centre, VectorXd rate)
    : height_(std::move(height)), centre_(std::move(centre)), rate_(std::move(rate)) {}

std::unique_ptr<ConditionalMoments> BumpSumFunction::along(const GaussianLaw& base,
                                                           const MatrixXd& slope) const {
  // In the eigenvectors of S everything is diagonal:
  // E exp(-r |X - c|^2/2) = prod_i (1 + r l_i)^(-1/2) exp(-r (c - mu)_i^2 / (2 (1 + r l_i))).
  const SymmetricEigen eigen = symmetric_eigen(base.covariance);
  const Eigen::ArrayXd lambda = eigen.values.array().max(0.0);
  const MatrixXd turned_slope = eigen.vectors.transpose() * slope;
  auto bump = [&](double factor, double exponent, double rate, const VectorXd& centre) {
    const VectorXd away = eigen.vectors.transpose() * (centre - base.mean);
    const VectorXd precision = rate / (1 + rate * lambda);
    const double log_mass = -(rate * lambda).log1p().sum() / 2;
    const MatrixXd weighted = precision.asDiagonal() * turned_slope;
    return BumpSumMoments::Term{
        factor,
        Quadratic{.constant = exponent + log_mass - away.dot(precision.cwiseProduct(away)) / 2,
                  .linear = weighted.transpose() * away,
                  .square = turned_slope.transpose() * weighted / -2}};
  };
  auto moments = std::make_unique<BumpSumMoments>();
  for (Index j = 0; j < height_.size(); ++j) {
    const VectorXd centre = centre_.row(j);
    moments->mean.push_back(bump(height_(j), 0, rate_(j), centre));
    for (Index l = 0; l <= j; ++l) {
      // A product of bumps is a bump between them, lower by their distance.
      const VectorXd other = centre_.row(l);
      const double rate = rate_(j) + rate_(l);
      const VectorXd between = (rate_(j) * centre + rate_(l) * other) / rate;
      const double factor = (j == l ? 1 : 2) * height_(j) * height_(l);
      const double lower = rate_(j) * rate_(l) / rate * (centre - other).squaredNorm() / 2;
      moments->mean_square.push_back(bump(factor, -lower, rate, between));
    }
  }
  return moments;
}

FoldedScaleFunction::FoldedScaleFunction(double sd, double slope, VectorXd direction)
    : sd_(sd), slope_(slope), direction_(std::move(direction)) {}

std::unique_ptr<ConditionalMoments> FoldedScaleFunction::along(const GaussianLaw& base,
                                                               const MatrixXd& slope) const {
  auto moments = std::make_unique<FoldedScaleMoments>();
  moments->sd = sd_;
  moments->growth = slope_;
  moments->tau = std::sqrt(std::max(direction_.dot(base.covariance * direction_), 0.0));
  moments->location = direction_.dot(base.mean);
  moments->slope = slope.transpose() * direction_;
  return moments;
}

}  // namespace headlab
