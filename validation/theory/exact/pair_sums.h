// SPDX-License-Identifier: Apache-2.0
/// \file The double integrals of two heads from a law of their kernels' levels (L_h, L_l) = (u, v)
/// at one token, with the response there.
#pragma once

#include <Eigen/Core>

#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/exact/scalar_tables.h"

namespace headlab {

/// Expectations given u, [u][tau], each times the probability of the node u. Without a regression
/// its means are empty, and with constant s2 too there is `constant_square` in place of the last.
struct GivenFirst {
  Eigen::VectorXd mean;          ///< E[m], [u]
  Eigen::MatrixXd fall;          ///< E[1 - e^(-tK)]
  Eigen::MatrixXd first;         ///< E[tK e^(-tK)]
  Eigen::MatrixXd mean_rest;     ///< E[m e^(-tK)]
  Eigen::MatrixXd mean_first;    ///< E[m tK e^(-tK)]
  Eigen::MatrixXd square_first;  ///< E[(m^2 + s2) tK e^(-tK)]
  double constant_square = 0;    ///< m^2 + s2
};

/// Probabilities of nodes (u, v), [u][v], alone and times moments of the response there. Matrices
/// of moments are empty where they are not needed.
struct JointLaw {
  Eigen::MatrixXd probability;
  Eigen::MatrixXd mean;
  Eigen::MatrixXd square;

  JointLaw(Eigen::Index rows, Eigen::Index columns, const ResponseMoments& response);

  /// Sets an entry; z are the standardised scalars.
  void set(Eigen::Index i, Eigen::Index j, double p, const Eigen::VectorXd& z,
           const ResponseMoments& response);
  /// Sums over v, given the second head's table [v][tau].
  GivenFirst given_first(const KernelTable& table, const ResponseMoments& response) const;
};

/// Sums over the design, [sigma][tau], of what a pair's integrals need.
class LevelPairSums {
 public:
  LevelPairSums(Eigen::Index sigmas, Eigen::Index taus);

  /// Adds one component: the first head's table [u][sigma] and its probabilities [u].
  void add(const KernelTable& table, const Eigen::VectorXd& probability, const GivenFirst& given);
  /// The double integral.
  PairMoments integrate(const PairTokens& tokens, const Eigen::ArrayXd& sigma_weights,
                        const Eigen::ArrayXd& tau_weights) const;

 private:
  Eigen::VectorXd fall_u_, first_u_, mean_first_u_;  ///< E[1 - e^(-sK_h)], E[sK_h e^(-sK_h)], ...
  Eigen::VectorXd fall_v_, first_v_, mean_first_v_;  ///< of the second head
  Eigen::MatrixXd fall_fall_;                        ///< E[(1 - e^(-sK_h)) (1 - e^(-tK_l))], ...
  Eigen::MatrixXd first_fall_;
  Eigen::MatrixXd fall_first_;
  Eigen::MatrixXd first_first_;
  Eigen::MatrixXd mean_first_rest_;  ///< E[m sK_h e^(-sK_h-tK_l)]
  Eigen::MatrixXd mean_rest_first_;  ///< E[m tK_l e^(-sK_h-tK_l)]
  Eigen::MatrixXd square_;           ///< E[(m^2+s2) sK_h tK_l e^(-sK_h-tK_l)]
};

}  // namespace headlab
