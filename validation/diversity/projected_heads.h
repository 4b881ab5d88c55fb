// SPDX-License-Identifier: Apache-2.0
/// \file Diversity indices of heads as they project, whatever columns and whatever query matrices
/// they have: M_h = W_h W_h^T [d][d] takes the place of the projector P_h, A_h = M_h/b^2.
#pragma once

#include <vector>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "validation/diversity/indices.h"

namespace headlab {

struct KernelLaw;

/// Computes the leading-order correlation of two heads' noise at x = 0 for X ~ N(0, I) and the
/// Gaussian kernel,
///
///     rho = det(I + 2 A_h)^(1/4) det(I + 2 A_l)^(1/4) / det(I + A_h + A_l)^(1/2),
///
/// which for orthonormal columns is overlap() of their angles.
/// \param w,other [d][k], any numbers of columns  \param bandwidth b in [1e-100, 1e100]
double overlap(const Eigen::MatrixXd& w, const Eigen::MatrixXd& other, double bandwidth);

/// Computes chordal, spectral, overlap and qk of heads as subspace_indices() does, for columns that
/// need not be orthonormal. `chordal` and `spectral` are of the column spaces, and undefined where
/// these differ in dimension. `overlap` and `qk` take M_h, `qk` with query matrices W_K W_Q^T; they
/// have no upper bound in closed form then.
/// \param compressed keys and queries were fitted to one another, so that `qk` is undefined
std::vector<Index> head_indices(const Subspaces& heads, const KernelLaw& kernel, bool compressed);

}  // namespace headlab
