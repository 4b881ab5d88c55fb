// SPDX-License-Identifier: Apache-2.0
/// \file What follows for the ensemble from the means, biases and covariances of its heads: best
/// head weights and what estimating them costs, output projection, the floor of the variance.
///
/// The weights of sum 1, M^-1 1/(1^T M^-1 1), are optimal_weights() in engine/run/pilot.h. Axes: H
/// = heads, v = dimension of a head's output, o = dimension of the projected output.
#pragma once

#include <vector>

#include <Eigen/Core>

namespace headlab {

/// Computes argmin a^T M a over a >= 0 of sum 1: the best average of heads, none of them
/// subtracted.
/// \param m [H][H], symmetric and positive definite: C + B B^T, averaged over queries
/// \return [H]; ParameterError as optimal_weights()
std::vector<double> nonnegative_weights(const Eigen::MatrixXd& m);

/// Computes argmin E(m - sum_h a_h f_h)^2 over all a, E[f f^T]^-1 E[m f]. At one query, with e = E
/// f: (C + e e^T)^-1 m e.
/// \param second_moments [H][H], C + e e^T averaged over queries, positive definite
/// \param with_truth [H], m e averaged over queries
/// \return [H]; throws ParameterError where second_moments is singular
std::vector<double> unconstrained_weights(const Eigen::MatrixXd& second_moments,
                                          const Eigen::VectorXd& with_truth);

/// Returns (R - H)/(R - 1): the expected in-sample mean squared error of the weights of sum 1 that
/// are best on R replicates, over that of the best ones. Unbiased heads with normal errors.
double in_sample_optimism(double replicates, int heads);

/// Returns 1 + (H - 1)/(R - H - 1): the expected mean squared error of those weights on fresh
/// replicates, over that of the best ones. Infinite for R <= H + 1.
double fresh_sample_cost(double replicates, int heads);

/// Returns V (1/H + (1 - 1/H) rho), the variance of the mean of H heads of variance V and
/// correlation rho; for H -> infinity the floor rho V.
double ensemble_variance(double variance, double correlation, int heads);

/// Computes E|sum_h A_h f_h - g|^2 = |A e - g|^2 + tr(A C A^T) for heads with vector outputs,
/// stacked. \param projection [o][H v], (A_1, ..., A_H), A_h = W_O^h W_V^h \param mean [H v], E f_1
/// above E f_2 and so on \param covariance [H v][H v], blocks Cov(f_h, f_l) \param target [o], g
double output_projection_error(const Eigen::MatrixXd& projection, const Eigen::VectorXd& mean,
                               const Eigen::MatrixXd& covariance, const Eigen::VectorXd& target);

/// Returns the covariance of stacked outputs for noise alone, blocks C_hl S.
/// \param weights_covariance [H][H], C_hl for noise of variance 1
/// \param noise_covariance [v][v], S
Eigen::MatrixXd stacked_noise_covariance(const Eigen::MatrixXd& weights_covariance,
                                         const Eigen::MatrixXd& noise_covariance);

}  // namespace headlab
