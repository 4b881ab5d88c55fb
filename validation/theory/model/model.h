// SPDX-License-Identifier: Apache-2.0
/// \file A scenario in the terms of its closed forms: Gaussian mixtures, functions whose Gaussian
/// expectations are known, matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <Eigen/Core>

#include "engine/scenario/scenario.h"
#include "validation/theory/model/integrable.h"

namespace headlab {

/// The law of a design point: component c with probability weights[c].
struct GaussianMixture {
  std::vector<double> weights;  ///< [c], sum 1; those of weight 0 are left out
  std::vector<GaussianLaw> components;
};

/// Everything a closed form needs. Axes: d, k, H = heads, Q = queries as in the plan.
struct TheoryModel {
  std::uint64_t n = 1;
  GaussianMixture design;
  bool standard_design = false;                              ///< X ~ N(0, I)
  std::shared_ptr<const IntegrableFunction> regression;      ///< m
  bool zero_regression = false;                              ///< m = 0 everywhere
  std::shared_ptr<const IntegrableFunction> noise_variance;  ///< s^2(x)
  double noise_sd = 0;                                       ///< s, where it is constant
  bool constant_noise = true;                                ///< s^2(x) = noise_sd^2 everywhere
  KernelLaw kernel;                                          ///< gaussian or softmax
  std::vector<Eigen::MatrixXd> projections;                  ///< [H] of [d][k], or fewer columns
  Eigen::VectorXd head_weights;                              ///< [H]
  std::vector<Eigen::VectorXd> queries;                      ///< [Q] of [d]
  std::vector<double> truth;                                 ///< [Q], m at the queries
};

/// Reads a scenario as a model: normal or mixture design; regression of law zero, linear, cosines,
/// random_cosines, additive, single_index or bumps; any noise; gaussian or softmax kernel. Whether
/// the design is fixed is not looked at. Throws InvalidInput with one line that names the
/// assumption a closed form needs and the scenario does not meet.
TheoryModel theory_model(const Condition& condition);

}  // namespace headlab
