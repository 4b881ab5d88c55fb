// SPDX-License-Identifier: Apache-2.0
/// \file How the noise covariance of two heads depends on the angles between their subspaces.
///
/// X ~ N(0, I), Gaussian kernel of one bandwidth, noise alone with constant s2.
///
/// Theorem: at x = 0, and averaged over queries x ~ N(0, I),
/// C_hl = s2 n sum_alpha prod_j (cos t_j)^|alpha_j| G_alpha^2 at every n and k, with G_alpha the
/// Hermite coefficients of one head's weight. So it increases in every cos^2 t_j, and is s2/n at
/// right angles. It is false at a fixed x off the centre.
#pragma once

#include <cstdint>

#include <Eigen/Core>

namespace headlab {

/// Computes the leading-order noise correlation of two heads at any query,
///
///     rho_hl = Z_hl / sqrt(Z_hh Z_ll),  Z_hl = Z((P_h + P_l)/b^2),
///     Z(A) = det(I + A)^(-1/2) exp(-x^T A (I + A)^(-1) x/2)
///
/// \param first,second [d][k], orthonormal columns
/// \param query x [d]
/// \param bandwidth b > 0
/// \return rho > 0; off the centre it may exceed 1 and may grow with the angles
double overlap_correlation(const Eigen::MatrixXd& first, const Eigen::MatrixXd& second,
                           const Eigen::VectorXd& query, double bandwidth);

/// Computes n C_hl / s2, exact at n points, of two heads of dimension k = 1: 1 for independent
/// heads.
/// \param cosine of the angle between w_h and w_l, in [-1, 1]
/// \param first,second w_h.x and w_l.x; 0 and 0 at the centre
/// \param bandwidth b > 0
/// \param n >= 1
/// Throws InvalidInput where weights do not sum to one within 1e-7.
double noise_covariance_ratio(double cosine, double first, double second, double bandwidth,
                              std::uint64_t n);

/// A figure from quadrature.
struct Averaged {
  double value = 0;
  double change = 0;  ///< from a grid of twice the step
};

/// Computes the mean of noise_covariance_ratio over queries x ~ N(0, I), by the trapezoid rule.
/// Seconds: it is a hundred double integrals. Throws as noise_covariance_ratio.
Averaged query_averaged_covariance_ratio(double cosine, double bandwidth, std::uint64_t n);

}  // namespace headlab
