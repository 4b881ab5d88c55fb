// SPDX-License-Identifier: Apache-2.0
/// \file Softmax attention in closed form: keys X ~ N(0, I), weights proportional to exp(a_h.X)
/// with tilt a_h = M_h x/t, M_h = W_Kh W_Qh^T (P_h with one projection).
///
/// All to leading order in 1/n and of the noise alone, s^2 its variance; means over queries are for
/// x ~ N(0, I). The forms for a given query, with signal, are in first_order.h; the mean
/// correlation of frames is query_key_overlap in indices.h.
#pragma once

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace headlab {

/// Computes the correlation of two heads' noise at one query, rho_hl = exp(-|a_h - a_l|^2/2).
/// \param a,b tilts [d]
double softmax_correlation(const Eigen::VectorXd& a, const Eigen::VectorXd& b);

/// Computes the mean over queries of log rho_hl, -|M_h - M_l|_F^2/(2 t^2). For frames its mean over
/// pairs is -(k/t^2) times the chordal index, so -index at t = sqrt(k).
/// \param m,other [d][d]
/// \param temperature t > 0
double mean_log_correlation(const Eigen::MatrixXd& m, const Eigen::MatrixXd& other,
                            double temperature);

/// Computes the mean over queries of rho_hl, det(I + (M_h - M_l)^T (M_h - M_l)/t^2)^(-1/2).
double mean_correlation(const Eigen::MatrixXd& m, const Eigen::MatrixXd& other, double temperature);

/// Computes the mean over queries of n C_hl/s^2 for two frames,
/// prod_j ((1 - c_j^2/t^2)^2 - c_j^2/t^4)^(-1/2); infinite where t^2 <= c_j^2 + c_j for some j.
/// \param cosines [k], of the principal angles
double mean_covariance_ratio(const std::vector<double>& cosines, double temperature);

/// Computes the mean over queries of n/n_eff = n V/s^2, (1 - 2/t^2)^(-k/2); infinite for t^2 <= 2.
/// The same as mean_covariance_ratio of aligned heads.
double mean_inverse_sample_share(int k, double temperature);

/// Computes n_eff/n = exp(-k/t^2) at a query of typical length |W^T x|^2 = k: 1/e for every k at t
/// = sqrt(k), e^-k at t = 1.
double typical_sample_share(int k, double temperature);

/// Computes sigma_c = sqrt(2 log n), the standard deviation of the logits above which a few keys
/// take all the weight. \param n >= 1
double condensation_threshold(std::uint64_t n);

/// Computes the limit of E sum_i w_i^2 for n -> infinity at fixed sigma/sigma_c: 1 - sigma_c/sigma
/// above the threshold and 0 below it.
/// \param sigma standard deviation of the logits, > 0
double condensed_squared_weights(std::uint64_t n, double sigma);

}  // namespace headlab
