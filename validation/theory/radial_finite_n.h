// SPDX-License-Identifier: Apache-2.0
/// \file Exact finite-n moments of Gaussian heads of k >= 2 dimensions: X ~ N(0, I), constant s2, m
/// zero or a sum of cosines. The kernel sees R = |U - q|, U = W^T X, q = W^T x, and
///
///     E[g(R) e^(iv.U)] = int g(r) J_v(r) dr,
///     J_v(r) = r^(k-1) (2 pi)^(-k/2) |S^(k-2)| e^(iv.q - (r^2+q^2)/2) int_0^pi e^(z cos a)
///     sin^(k-2) a da, z = r sqrt(q.q - v.v - 2i q.v)
///
/// which is the Bessel form r^(k-1) e^(..) z^(-nu) I_nu(z), nu = k/2 - 1. Heads on orthogonal
/// subspaces have independent radii, so that every expectation of two factors.
#pragma once

#include <Eigen/Core>

#include "validation/theory/scalar_finite_n.h"

namespace headlab {

/// J_v at each of `radius`. \param v,q [k], k >= 2
Eigen::ArrayXcd radial_wave(const Eigen::VectorXd& v, const Eigen::VectorXd& q,
                            const Eigen::ArrayXd& radius);

HeadMoments radial_head_moments(const TheoryModel& model, std::size_t query, std::size_t head,
                                const Resolution& resolution);

/// Heads with W_h^T W_l = 0.
PairMoments orthogonal_pair_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                    std::size_t l, const Resolution& resolution);

}  // namespace headlab
