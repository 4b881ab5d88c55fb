// SPDX-License-Identifier: Apache-2.0
/// \file Exact bias, variance and covariance of heads at a finite number of design points: no
/// asymptotics, no simulation.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "validation/theory/model/model.h"

namespace headlab {

/// One head at one query.
struct FiniteNHead {
  double bias = 0;                 ///< E f_h - m(x)
  double variance = 0;             ///< Var f_h
  double change = 0;               ///< of the variance, when the quadrature was last refined
  double normalisation_error = 0;  ///< n int E[K e^(-sK)] phi^(n-1) ds - 1, which is 0
};

/// Two heads at one query.
struct FiniteNPair {
  double covariance = 0;           ///< Cov(f_h, f_l)
  double change = 0;               ///< of the covariance, when the quadrature was last refined
  double normalisation_error = 0;  ///< E f_h f_l - 1 for responses that are all one, which is 0
};

/// All heads at one query.
struct FiniteN {
  Eigen::VectorXd bias;            ///< [H]
  Eigen::MatrixXd covariance;      ///< [H][H]
  Eigen::MatrixXd change;          ///< [H][H], of `covariance`
  double normalisation_error = 0;  ///< the largest in size
};

/// Returns nullopt where an exact form covers the pair (h = l: the head), else one line that names
/// the assumption that fails and what would do instead.
std::optional<std::string> finite_n_obstacle(const TheoryModel& model, std::size_t h,
                                             std::size_t l);

/// Computes E f_h - m(x) and Var f_h exactly at n points.
/// \param query index into model.queries
/// Throws InvalidInput where finite_n_obstacle names one, and where weights do not sum to one
/// within 1e-7 at the finest resolution; before they are laid, for grids that would not fit in
/// memory or would have to be far coarser than the kernel.
FiniteNHead finite_n_head(const TheoryModel& model, std::size_t query, std::size_t h);

/// Computes Cov(f_h, f_l) exactly at n points, h != l, from the two heads' own results.
FiniteNPair finite_n_pair(const TheoryModel& model, std::size_t query, std::size_t h, std::size_t l,
                          const FiniteNHead& first, const FiniteNHead& second);

/// Computes all heads and pairs at every query, in parallel; the same bits for any number of
/// threads. Throws as the functions above.
/// \param threads >= 1
/// \return [Q]
std::vector<FiniteN> finite_n(const TheoryModel& model, int threads = 1);

}  // namespace headlab
