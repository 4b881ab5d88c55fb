// SPDX-License-Identifier: Apache-2.0
/// \file Exact finite-n expectations of one head's weights, averaged over queries x ~ N(0, I): what
/// the error of an ensemble of orthogonal heads is made of
/// (validation/theory/population/population_error.h).
///
/// With U = W^T X ~ N(0, I) in k dimensions, q = W^T x, w_i the weights, and c a correlation, all
/// follow from 1/D = int_0^inf e^(-sD) ds, phi(s) = E e^(-sK):
///
///     E sum_i w_i^2                  = n int s E[K^2 e^(-sK)] phi^(n-1) ds
///     E sum_i w_i c(U_i - q)         = n int E[K c(U - q) e^(-sK)] phi^(n-1) ds
///     E sum_{i != j} w_i w_j c(U_ij) = n(n-1) int s E[K_1 K_2 c(U_12) e^(-sK_1-sK_2)] phi^(n-2) ds
///     n E w_1 c(U_12)                = n int E[K_1 c(U_12) e^(-sK_1-sK_2)] phi^(n-2) ds
///
/// U_ij = U_i - U_j. A Gaussian kernel sees R = |U - q| alone, softmax the coordinate of U along q,
/// so that every expectation is over one scalar or, with c(U_12) averaged over all else, two. The
/// latter average changes slowly: it is tabulated on a coarse grid, to which the kernel's own
/// integrals, on a grid as fine as the kernel is narrow, are passed by Lagrange interpolation. s is
/// integrated over sigma = log s by the trapezoid rule, whose error falls like exp(-pi^2/step) for
/// functions that are bounded in |Im sigma| < pi/2 (Trefethen and Weideman, SIAM Review 56, 2014).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "validation/theory/population/zonal.h"

namespace headlab {

/// A head whose queries are drawn from N(0, I).
struct PopulationDomain {
  bool softmax = false;  ///< exp(q.U/t); else exp(-|U - q|^2/(2 b^2))
  int k = 1;
  std::vector<Correlation> correlations;  ///< [C]
};

/// One setting of that head.
struct PopulationSetting {
  double width = 1;  ///< b, or the temperature t
  std::uint64_t n = 2;
  bool operator==(const PopulationSetting&) const = default;
};

/// Expectations over queries and training sets.
struct PopulationHead {
  double squares = 0;               ///< E sum_i w_i^2
  Eigen::ArrayXd to_query;          ///< [C] E sum_i w_i c(U_i - q)
  Eigen::ArrayXd pairs;             ///< [C] E sum_{i != j} w_i w_j c(U_i - U_j)
  Eigen::ArrayXd one_weight;        ///< [C] n E w_1 c(U_1 - U_2)
  Eigen::ArrayXd independent_sets;  ///< [C] E sum_ij w_i w'_j c(U_i - U'_j), ' another training set
  Eigen::ArrayXd
      independent_point;  ///< [C] E sum_i w_i c(U_i - U'), U' ~ N(0, I) a point of no set
  /// Largest over queries of E sum_i w_i - 1 and E (sum_i w_i)^2 - 1, which are 0.
  double normalisation_error = 0;
  /// Of `squares`, and the largest of the others': Kronrod's 41 queries against Gauss's 20 of them,
  /// far more than the error of the former.
  double change = 0;
};

/// Computes the expectations for each of `settings`; they share what does not depend on them, so
/// that many cost little more than one. The same bits for any number of threads.
/// \param settings n >= 2, width > 0
/// Throws InvalidInput where a normalisation error exceeds 1e-7, and for a kernel too narrow for
/// its grid.
std::vector<PopulationHead> population_heads(const PopulationDomain& domain,
                                             std::span<const PopulationSetting> settings,
                                             int threads = 1);

}  // namespace headlab
