// SPDX-License-Identifier: Apache-2.0
/// \file Functions of the design point whose expectations under Gaussian laws are closed.
///
/// Axes: d = dimension of the design, J = terms of a sum.
#pragma once

#include <memory>
#include <optional>

#include <Eigen/Core>

namespace headlab {

/// N(mean, covariance); the covariance may be singular.
struct GaussianLaw {
  Eigen::VectorXd mean;        ///< [d]
  Eigen::MatrixXd covariance;  ///< [d][d], symmetric
};

/// E m and E m^2 under one law.
struct FunctionMoments {
  double mean = 0;
  double mean_square = 0;
  /// Var m, where it is known without the difference of the two.
  std::optional<double> variance = {};

  /// E (m - a)(m - b). Where the variance is known nothing of the size of m^2 cancels.
  double product_about(double a, double b) const {
    if (variance) return *variance + (mean - a) * (mean - b);
    return mean_square - (a + b) * mean + a * b;
  }
  /// How far product_about() may be off by rounding.
  double product_rounding(double a, double b) const;
};

/// FunctionMoments of N(base.mean + slope z, base.covariance) as a function of z.
class ConditionalMoments {
 public:
  virtual ~ConditionalMoments() = default;
  /// \param z [slope.cols()]
  virtual FunctionMoments operator()(const Eigen::VectorXd& z) const = 0;
};

/// A function m of the design point whose Gaussian expectations are closed.
class IntegrableFunction {
 public:
  virtual ~IntegrableFunction() = default;
  /// Prepares the moments of N(base.mean + slope z, base.covariance): what does not depend on z is
  /// computed here, once. Arguments are copied as needed.
  /// \param slope [d][columns]
  virtual std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                                    const Eigen::MatrixXd& slope) const = 0;
  /// Prepares E m(X), and E m(X) m(X') and Cov(m(X), m(X')) in place of E m^2 and Var m, of points
  /// X and X' that each have the law of along() and the covariance `cross` [d][d], symmetric. Null
  /// where they are not known.
  virtual std::unique_ptr<ConditionalMoments> along_pair(const GaussianLaw& base,
                                                         const Eigen::MatrixXd& cross,
                                                         const Eigen::MatrixXd& slope) const;
  /// Moments under one law.
  FunctionMoments moments(const GaussianLaw& law) const;
};

/// m(x) = sum_j amplitude_j cos(frequency_j.x + phase_j), by
/// E cos(u.X + p) = exp(-u^T S u/2) cos(u.mu + p) for X ~ N(mu, S). J = 0 is m = 0.
class CosineSumFunction : public IntegrableFunction {
 public:
  /// \param amplitude [J]
  /// \param frequency [J][d], radians
  /// \param phase [J], radians
  CosineSumFunction(Eigen::VectorXd amplitude, Eigen::MatrixXd frequency, Eigen::VectorXd phase);
  /// One point takes J sines and cosines and 2 J^2 multiplications.
  std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                            const Eigen::MatrixXd& slope) const override;
  std::unique_ptr<ConditionalMoments> along_pair(const GaussianLaw& base,
                                                 const Eigen::MatrixXd& cross,
                                                 const Eigen::MatrixXd& slope) const override;

  const Eigen::VectorXd& amplitude() const { return amplitude_; }
  const Eigen::MatrixXd& frequency() const { return frequency_; }
  const Eigen::VectorXd& phase() const { return phase_; }

 private:
  Eigen::VectorXd amplitude_;
  Eigen::MatrixXd frequency_;
  Eigen::VectorXd phase_;
};

/// m(x) = constant + linear.x + x^T quadratic x.
class PolynomialFunction : public IntegrableFunction {
 public:
  /// \param linear [d]
  /// \param quadratic [d][d]; its antisymmetric part has no effect
  PolynomialFunction(double constant, Eigen::VectorXd linear, const Eigen::MatrixXd& quadratic);
  PolynomialFunction(double constant, const Eigen::VectorXd& linear);
  std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                            const Eigen::MatrixXd& slope) const override;
  std::unique_ptr<ConditionalMoments> along_pair(const GaussianLaw& base,
                                                 const Eigen::MatrixXd& cross,
                                                 const Eigen::MatrixXd& slope) const override;

 private:
  double constant_;
  Eigen::VectorXd linear_;
  Eigen::MatrixXd quadratic_;
};

/// m(x) = sum_j height_j exp(-rate_j |x - centre_j|^2 / 2).
class BumpSumFunction : public IntegrableFunction {
 public:
  /// \param height [J]
  /// \param centre [J][d]
  /// \param rate [J], 1/width^2, each > 0
  BumpSumFunction(Eigen::VectorXd height, Eigen::MatrixXd centre, Eigen::VectorXd rate);
  /// One point takes J (J + 3) / 2 exponentials.
  std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                            const Eigen::MatrixXd& slope) const override;

 private:
  Eigen::VectorXd height_;
  Eigen::MatrixXd centre_;
  Eigen::VectorXd rate_;
};

/// m(x) = sd^2 (1 + slope |direction.x|)^2, the variance of heteroscedastic noise, by the moments
/// of the folded normal |T|, T ~ N(a, tau^2):
/// E|T| = tau sqrt(2/pi) exp(-a^2/(2 tau^2)) + a erf(a/(tau sqrt 2)).
class FoldedScaleFunction : public IntegrableFunction {
 public:
  /// \param direction [d]
  FoldedScaleFunction(double sd, double slope, Eigen::VectorXd direction);
  std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                            const Eigen::MatrixXd& slope) const override;

 private:
  double sd_;
  double slope_;
  Eigen::VectorXd direction_;
};

}  // namespace headlab
