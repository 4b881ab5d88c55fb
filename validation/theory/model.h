// SPDX-License-Identifier: Apache-2.0
/// \file A scenario in the terms of its closed forms: Gaussian mixtures, functions whose Gaussian
/// expectations are known, matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <Eigen/Dense>

#include "engine/scenario.h"

namespace headlab {

/// N(mean, covariance); the covariance may be singular.
struct GaussianLaw {
  Eigen::VectorXd mean;        ///< [d]
  Eigen::MatrixXd covariance;  ///< [d][d]
};

/// The law of a design point: component c with probability weights[c].
struct GaussianMixture {
  std::vector<double> weights;
  std::vector<GaussianLaw> components;
};

/// E m and E m^2 under one Gaussian law.
struct FunctionMoments {
  double mean = 0;
  double mean_square = 0;
};

/// FunctionMoments of N(base.mean + slope z, base.covariance) as a function of z.
class ConditionalMoments {
 public:
  virtual ~ConditionalMoments() = default;
  /// \param z [slope.cols()]
  virtual FunctionMoments operator()(const Eigen::VectorXd& z) const = 0;
};

/// A function of the design point whose Gaussian expectations are closed.
class IntegrableFunction {
 public:
  virtual ~IntegrableFunction() = default;
  virtual FunctionMoments moments(const GaussianLaw& law) const = 0;
  /// What can be computed once for all z is; `base` and `slope` are copied as needed.
  virtual std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                                    const Eigen::MatrixXd& slope) const = 0;
};

/// Everything a closed form needs. Axes: d, k, H = heads, Q = queries as in the plan.
struct TheoryModel {
  std::uint64_t n = 1;
  GaussianMixture design;
  bool standard_design = false;  ///< X ~ N(0, I)
  std::shared_ptr<const IntegrableFunction> regression;  ///< m
  bool zero_regression = false;                          ///< m = 0 everywhere
  std::shared_ptr<const IntegrableFunction> noise_variance;  ///< s^2(x); only its mean is closed
  double noise_sd = 0;            ///< s, where it is constant
  bool constant_noise = true;     ///< s^2(x) = noise_sd^2 everywhere
  KernelLaw kernel;
  std::vector<Eigen::MatrixXd> projections;  ///< [H] of [d][k]
  Eigen::VectorXd head_weights;              ///< [H]
  std::vector<Eigen::VectorXd> queries;      ///< [Q] of [d]
  std::vector<double> truth;                 ///< [Q], m at the queries
};

/// Reads a scenario as a model. Throws Refused with one line that names the assumption a closed
/// form needs and the scenario does not meet.
TheoryModel theory_model(const Scenario& scenario);

}  // namespace headlab
