// SPDX-License-Identifier: Apache-2.0
/// \file Exact finite-n error of an ensemble of orthogonal heads, averaged over training sets,
/// queries x ~ N(0, I), noise and the law of the regression function, m random with
///     E m(x) m(x') = sum of variances times correlations.
///
/// Heads own coordinates of their own, H k <= d, and the coordinates of X are independent: an
/// expectation over two heads is a product of expectations over one (validation/theory/
/// population_head.h), whatever H and d. With wbar_i the mean over heads of the weights of key i,
///     MSE = (s^2 + Var m) E sum_i wbar_i^2 + E sum_{i != j} wbar_i wbar_j Cov(m(X_i), m(X_j))
///           - 2 E sum_i wbar_i Cov(m(X_i), m(x)) + Var m,
///     E sum_i wbar_i^2 = E sum_i w_i^2/H + (1 - 1/H)/n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "validation/theory/population/population_head.h"

namespace headlab {

struct Condition;

/// The second moments of a random regression function.
struct TruthLaw {
  /// Cov(m(x), m(x')) = sum_t variance_t exp(-|x - x'|^2/(2 length_t^2)).
  struct Scale {
    double variance = 1;
    double length = 1;
    std::size_t correlation = 0;  ///< the nearest length among `correlations` that is resolved
  };
  /// Cov(m(x), m(x')) = sum_j variance_j cos(frequency_j (x_j - x'_j)).
  struct Coordinate {
    double variance = 1;
    std::size_t correlation = 0;  ///< that of its frequency
  };
  std::vector<Scale> scales;              ///< of a stationary function
  std::vector<Coordinate> coordinates;    ///< [d], of an additive one
  std::vector<Correlation> correlations;  ///< those that heads are asked about
  double variance() const;
};

/// The law that a scenario's regression is a draw of: `zero`; `random_cosines`, over its seeds,
/// squared exponential or Matern, which is the squared exponential with its squared length gamma
/// distributed; `additive`, over phases that are independent and uniform. Throws InvalidInput,
/// naming data.regression, for another law.
TruthLaw truth_law(const Condition& condition);

/// H heads of dimension k on coordinates of their own, H k <= d.
struct PopulationEnsemble {
  double heads = 1;  ///< >= 1; enters as 1/H alone, so that it need not be whole
  int k = 1;
  int d = 1;
  std::uint64_t n = 2;
  double noise_sd = 0;
};

/// Means over queries and truths.
struct PopulationError {
  double mse = 0;
  double squared_bias = 0;  ///< E (E f - m(x))^2, the inner mean over training sets
  double variance = 0;      ///< V, of a head
  double covariance = 0;    ///< C, of two; 0 for H = 1
  /// Bound on the error of `mse` by the coarser rule over queries.
  double change = 0;
};

/// Combines the expectations of one head, those of `truth.correlations`:
/// MSE = B^2 + V/H + (1 - 1/H) C.
PopulationError population_error(const PopulationHead& head, const PopulationEnsemble& ensemble,
                                 const TruthLaw& truth);

}  // namespace headlab
