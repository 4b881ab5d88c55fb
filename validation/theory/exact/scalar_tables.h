// SPDX-License-Identifier: Apache-2.0
/// \file What the finite-n integrals of one head and of a pair share: conditional moments of the
/// response, tables of the kernel, powers of phi.
#pragma once

#include <memory>

#include <Eigen/Core>

#include "validation/theory/model/model.h"

namespace headlab {

/// E[m - m(x) | z] and E[(m - m(x))^2 + s2 | z] in one component of the design, z the standardised,
/// uncorrelated scalars of the point.
class ResponseMoments {
 public:
  /// \param truth m(x)
  /// \param directions [d][columns], directions^T S directions = I except columns of 0
  ResponseMoments(const TheoryModel& model, double truth, const GaussianLaw& component,
                  const Eigen::MatrixXd& directions);

  bool has_mean() const { return regression_ != nullptr; }
  /// Whether E[(m - m(x))^2 + s2 | z] is the same for every z, and its value then.
  bool is_constant() const { return !regression_ && !noise_; }
  double constant_square() const { return noise_variance_; }

  FunctionMoments operator()(const Eigen::VectorXd& z) const;

 private:
  double truth_;
  double noise_variance_;
  std::unique_ptr<ConditionalMoments> regression_;
  std::unique_ptr<ConditionalMoments> noise_;
};

/// Throws InvalidInput unless memory has room for tables of so many numbers.
/// \param numbers of one head or pair
/// \param at_once heads or pairs that are computed at the same time
void require_table_memory(double numbers, int at_once);

/// What the integrals need of sK = exp(sigma - L), [points][sigmas].
struct KernelTable {
  Eigen::MatrixXd fall;   ///< 1 - e^(-sK)
  Eigen::MatrixXd first;  ///< sK e^(-sK)
};
KernelTable kernel_table(const Eigen::ArrayXd& level, const Eigen::ArrayXd& sigma);

/// phi^power from 1 - phi; 1 at power <= 0, where phi may be 0.
Eigen::ArrayXXd power_of_phi(const Eigen::ArrayXXd& fall, double power);

}  // namespace headlab
