// SPDX-License-Identifier: Apache-2.0
/// \file Exact finite-n moments of Gaussian heads of two dimensions by a grid of the plane: heads
/// that a transformation stretches, and pairs of them on one plane.
#pragma once

#include <cstddef>

#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// Whether the columns of a head are two, orthogonal, and uncorrelated on a normal design.
bool is_planar(const TheoryModel& model, std::size_t h);

/// Whether both heads are planar and their columns span the same plane.
bool on_one_plane(const TheoryModel& model, std::size_t h, std::size_t l);

HeadMoments planar_head_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                const Resolution& resolution);
PairMoments planar_pair_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                std::size_t l, const Resolution& resolution);

}  // namespace headlab
