// SPDX-License-Identifier: Apache-2.0
/// \file The design seen through products of kernels: a Gaussian mixture again, in closed form.
///
/// The weight K_h(X)^a K_l(X)^b turns each component N(mu, S) of the design into
///
///     Gaussian kernel, with F = (sqrt(a) W_h, sqrt(b) W_l)/bandwidth, z = F^T (x - mu),
///     G = I + F^T S F:
///       mass  det(G)^(-1/2) exp(-z^T G^-1 z/2),  law N(mu + S F G^-1 z, S - S F G^-1 F^T S)
///     softmax, with F = (a W_h, b W_l)/t, z = (W_h, W_l)^T x, z by what projects queries:
///       mass  exp(mu.F z + z^T F^T S F z/2),     law N(mu + S F z, S)
///
/// The first is the tilt lemma for A = F F^T, the second exponential tilting.
#pragma once

#include <memory>
#include <vector>

#include <Eigen/Core>

#include "validation/theory/model/model.h"

namespace headlab {

/// What a weight sees at one query.
struct TiltedMoments {
  double log_mass = 0;         ///< log E[weight]
  FunctionMoments regression;  ///< E m and E m^2 under the weighted law
  double noise_variance = 0;   ///< E s^2 under the weighted law
};

/// The law of X under the weight K_h^power_h K_l^power_l, as a function of the query. Covariances,
/// and all of the functions that does not depend on the query, are computed once.
class TiltedDesign {
 public:
  /// \param head,other indices into model.projections; may be equal
  /// \param power,other_power >= 0
  /// \param with_regression false: moments of m are not needed and left at 0
  /// `model` must outlive the object.
  TiltedDesign(const TheoryModel& model, std::size_t head, int power, std::size_t other,
               int other_power, bool with_regression);

  /// Moments at the query x [d].
  TiltedMoments at(const Eigen::VectorXd& x) const;

 private:
  /// One component: z = frame^T (x - origin), log mass = constant + linear.z + z^T quadratic z.
  struct Component {
    double weight = 1;
    Eigen::VectorXd origin;
    Eigen::MatrixXd frame;
    double constant = 0;
    Eigen::VectorXd linear;
    Eigen::MatrixXd quadratic;
    std::unique_ptr<ConditionalMoments> regression;      ///< null where not needed
    std::unique_ptr<ConditionalMoments> noise_variance;  ///< null where constant
  };

  const TheoryModel& model_;
  std::vector<Component> components_;
};

}  // namespace headlab
