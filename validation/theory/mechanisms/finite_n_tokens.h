// SPDX-License-Identifier: Apache-2.0
/// \file Exact finite-n moments of heads with a stage or on a sequence.
///
/// Points of an autoregressive sequence: the head sees a stationary Gaussian sequence U_i of
/// correlation phi, whose step is diagonal in Hermite polynomials, sum_k phi^k h_k(u) h_k(v): with
/// T_s = (E h_j e^(-sK) h_k),
///
///     E exp(-s sum_i K_i) = e_0^T T Lambda T ... Lambda T e_0,  Lambda = diag(phi^k),
///
/// and the factors of one or two points are replaced for the moments of what it estimates.
///
/// A head that keeps its largest weights: one more quadrature around that of a plain head.
///
/// Keys at two scales: blocks of two tokens are independent, and a block counts as one point whose
/// kernel value is the sum of its two.
///
/// Gaussian heads of two dimensions, by a grid of the plane: heads that a transformation
/// stretches, and pairs of them on one plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// One line where a head on dependent points is not covered: what it sees is one scalar, without
/// gaps; the regression is a function of that scalar; and the normal design has a bearable number
/// of points.
std::optional<std::string> sequence_obstacle(const TheoryModel& model, std::size_t query,
                                             std::size_t h);

struct SequenceMoments : HeadMoments {
  Eigen::VectorXd weights;  ///< [N_h], E w_i of each point seen, the oldest first
};
SequenceMoments sequence_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                 const Resolution& resolution);

/// Given the (k+1)-th largest weight, the k largest are those of independent points beyond it, and
/// P(L <= its level) has the law Beta(k + 1, n - k).
/// \param kept k < n
HeadMoments top_moments(std::uint64_t n, std::uint64_t kept, const ScalarHead& head,
                        const DesignOf& design, const Resolution& resolution);

struct RatioMoments : HeadMoments {
  double mean_kept = 0;  ///< tokens
};

/// Given the largest weight w, the others are those of independent points with less, of which the
/// ones of at least `ratio` times w are kept.
RatioMoments ratio_moments(std::uint64_t n, double ratio, const ScalarHead& head,
                           const DesignOf& design, const Resolution& resolution);

/// A head with model.levels = (l_0, l_1) that sees one scalar of a normal design.
/// \param tokens that it sees, a multiple of two
HeadMoments two_level_moments(const TheoryModel& model, std::uint64_t tokens, double truth,
                              const ScalarHead& head, const Resolution& resolution);

/// The filtered key kappa_i = sum_l lambda_l kbar^l_i of independent keys N(0, I) in complete
/// blocks: Var kappa = variance I, Cov(kappa_i, X_i) = covariance I.
struct FilteredKeyMoments {
  double variance;
  double covariance;
  /// Of a softmax head at equal leading bias, over |a|^2: its leading noise variance is
  /// exp(price_exponent |a|^2) times that of the plain head.
  double price_exponent;
};
FilteredKeyMoments filtered_key_moments(const std::vector<double>& levels);

/// Whether the columns of a head are two, orthogonal, and uncorrelated on a normal design.
bool is_planar(const TheoryModel& model, std::size_t h);

/// Whether both heads are planar and their columns span the same plane.
bool on_one_plane(const TheoryModel& model, std::size_t h, std::size_t l);

HeadMoments planar_head_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                const Resolution& resolution);
PairMoments planar_pair_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                std::size_t l, const Resolution& resolution);

}  // namespace headlab
