// SPDX-License-Identifier: Apache-2.0
/// \file Diversity indices of the heads' subspaces: 0 when all heads look at the same subspace,
/// each with the largest value it can take.
///
/// A head-diversity index (HDI) is the idea of Fokoué 2026, arXiv:2605.20271. Every definition
/// below is headlab's own reading, derived from the model; where the paper fixes one, it may be
/// another.
///
/// Axes: d = dimension of the design, k = per-head dimension, H = heads; t_1..t_k are the principal
/// angles of a pair, cos t_j the singular values of W_h^T W_l, P_h = W_h W_h^T.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "kernels/matrices.h"

namespace headlab {

// Subspaces are H matrices W_h [d][k] of one shape, 1 <= k <= d, with orthonormal columns. Every
// function here throws std::invalid_argument where the shape differs or |W_h^T W_h - I| exceeds
// 1e-8 anywhere. One Newton step removes what is left of the deviation, so that results depend on
// the subspaces alone.

/// A diversity index; nullopt where it is undefined.
struct Index {
  std::string name;
  std::optional<double> value;        ///< in [0, upper bound]
  std::optional<double> upper_bound;  ///< upper bound; diverse heads reach it where d allows
};

/// Computes the cosines of the principal angles of two subspaces: the k singular values of a^T b.
/// \param a,b [d][k], orthonormal columns
/// \return [k], descending, clamped to [0, 1]
std::vector<double> principal_cosines(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);

/// Computes the leading-order correlation of two heads' noise at x = 0 for X ~ N(0, I) and the
/// Gaussian kernel exp(-r^2/(2 b^2)):
///
///     rho = prod_j sqrt(b^2 (2 + b^2) / ((1 + b^2)^2 - cos^2 t_j))
///         = prod_j (1 + sin^2 t_j / (b^2 (2 + b^2)))^(-1/2)
///
/// \param cosines [k], each in [0, 1], k >= 1
/// \param bandwidth b in [1e-100, 1e100], in units of the design
/// \return rho in [0, 1]: 1 for aligned heads
double overlap(const std::vector<double>& cosines, double bandwidth);

/// Computes the index "chordal", the mean squared sine over all pairs and angles (squared chordal
/// distance over k):
///
///     1 - mean_{h != l} (1/k) sum_j cos^2 t_j = H/(H-1) (1 - tr(Pbar^2)/k),  Pbar = mean of P_h
///
/// Undefined for H = 1. Ceiling H/(H-1) (1 - k/min(d, H k)): 1 only if H k <= d.
Index chordal_index(const Matrices& subspaces);

/// Computes four indices, always named chordal, spectral, overlap, qk in this order, with null for
/// overlap without a Gaussian bandwidth and for qk without a softmax temperature. Chordal is
/// chordal_index(). Spectral is the effective number of directions the heads cover beyond k:
///
///     (exp(entropy of eig(Pbar)/k) - k) / (min(H k, d) - k)
///
/// Undefined where min(H k, d) = k, that is for H = 1 or k = d. Ceiling 1.
///
/// Overlap is 1 - mean of overlap(t(h, l), b) over pairs h != l: the share of the noise variance
/// that averaging could remove at x = 0, to leading order. Undefined for H = 1. Ceiling 1 - rho_0,
/// rho_0 = overlap at right angles; below 2k dimensions no pair reaches it.
///
/// For softmax heads exp((W^T x).(W^T X)/t) with W_Q = W_K = W and keys X ~ N(0, I), qk is 1 - mean
/// over pairs h != l and queries x ~ N(0, I) of the leading-order correlation of their noise,
///
///     E rho = E exp(-|(P_h - P_l) x|^2 / (2 t^2)) = prod_j 1 / (1 + sin^2 t_j / t^2)
///
/// Undefined for H = 1. Ceiling 1 - (1 + 1/t^2)^(-k); below 2k dimensions no pair reaches it.
///
/// \param gaussian_bandwidth,softmax_temperature in [1e-100, 1e100]; absolute error of overlap and
/// qk at most 1e-12 from 1e-3 on
std::vector<Index> subspace_indices(const Matrices& subspaces,
                                    std::optional<double> gaussian_bandwidth,
                                    std::optional<double> softmax_temperature);

/// Indices together with the products that they are computed from.
struct SubspacePairs {
  std::vector<Index> indices;  ///< chordal, spectral, overlap
  /// [H (H-1)/2], W_l^T W_h [k][k] of the pairs (l, h) = (0, 1), (0, 2), .., (H-2, H-1).
  std::vector<Eigen::MatrixXd> products;
};

/// Computes what subspace_indices() does for a Gaussian kernel, to rounding, and keeps the pairs.
SubspacePairs subspace_pairs(const Matrices& subspaces, double gaussian_bandwidth);

/// The cosines of the principal angles from W_l^T W_h, as principal_cosines() of the two frames.
std::vector<double> principal_cosines(const Eigen::MatrixXd& product);

/// The indices of H heads in G groups, the H/G heads of each on one subspace, as shares of the
/// indices of the G subspaces.
struct GroupShares {
  double pairs;     ///< of chordal, overlap: (H - H/G)/(H - 1), the pairs of heads of two groups
  double spectral;  ///< (min(G k, d) - k)/(min(H k, d) - k); 1 where that is 0/0
};

/// Computes the shares; both are 1 for G = H. Throws std::invalid_argument unless 1 <= k <= d,
/// heads >= 2 and groups divides heads.
GroupShares group_shares(int d, int k, int heads, int groups);

/// Returns H/(H-1), the upper bound of the index "output" = 1 - C/V: reached where the heads'
/// errors cancel. Throws std::invalid_argument for heads < 2, where the index is undefined.
double output_index_upper_bound(int heads);

/// Mean and standard deviation of an index under heads without structure.
struct HaarNull {
  double mean;
  double sd;
};

/// Computes the law of the chordal index for independent Haar-uniform subspaces; exact, because
/// pairs that share a head are still uncorrelated:
///
///     mean = 1 - k/d,  variance = 4 (d-k)^2 / (d^2 (d-1) (d+2) H (H-1))
///
/// Throws std::invalid_argument unless 1 <= k <= d and heads >= 2.
HaarNull haar_null(int d, int k, int heads);

}  // namespace headlab
