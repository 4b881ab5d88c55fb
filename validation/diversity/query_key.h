// SPDX-License-Identifier: Apache-2.0
/// \file Softmax heads whose queries and keys are projected by different matrices, in closed form.
///
/// Head h gives the key X the weight exp((W_Q^T x).(W_K^T X)/t), which is exp(a_h.X) with
/// a_h = M_h x/t, M_h = W_K W_Q^T [d][d]. For queries and keys N(0, I) the noise of two heads has,
/// to leading order, the correlation rho = exp(-|a_h - a_l|^2/2).
#pragma once

#include <vector>

#include <Eigen/Core>

namespace headlab {

/// rho of two heads, averaged over queries x ~ N(0, I).
struct QueryKeyCorrelation {
  double mean = 1;      ///< E rho = det(I + (M_h - M_l)^T (M_h - M_l)/t^2)^(-1/2), in [0, 1]
  double log_mean = 0;  ///< log E rho, where E rho is too small for a double
  double mean_log = 0;  ///< E log rho = -|M_h - M_l|_F^2/(2 t^2)
};

/// Computes the correlations of all pairs (0, 1), (0, 2), .., (H-2, H-1) of H heads.
/// \param w_q,w_k [H] of [d][k]
/// \param temperature t > 0
/// Errors are eps (|M_h| + |M_l|)^2/t^2. Throws std::invalid_argument where shapes differ or the
/// logits leave float64.
std::vector<QueryKeyCorrelation> query_key_correlations(const std::vector<Eigen::MatrixXd>& w_q,
                                                        const std::vector<Eigen::MatrixXd>& w_k,
                                                        double temperature);

/// Computes the singular values of W_Q W_K^T, which are those of M, largest first; to an absolute
/// error of about sqrt(eps) of the largest.
Eigen::VectorXd query_key_singular_values(const Eigen::MatrixXd& w_q, const Eigen::MatrixXd& w_k);

/// Computes the right singular vectors of W_Q W_K^T = U diag(s) V^T in the coordinates of the keys:
/// V = Q times the result, W_K = Q R.
/// \return [k][k], orthogonal
Eigen::MatrixXd key_singular_vectors(const Eigen::MatrixXd& w_q, const Eigen::MatrixXd& w_k);

/// Computes log E rho from M_h = V_h diag(s_h) U_h^T and how the two heads lie to one another.
/// \param s_h,s_l [k]
/// \param u,v [k][k], U_h^T U_l and V_h^T V_l
double log_query_key_correlation(const Eigen::VectorXd& s_h, const Eigen::VectorXd& s_l,
                                 const Eigen::MatrixXd& u, const Eigen::MatrixXd& v,
                                 double temperature);

}  // namespace headlab
