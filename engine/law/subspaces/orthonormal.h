// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "engine/law/subspaces/head_frames.h"
#include "kernels/linear_algebra.h"

namespace headlab {

/// Replaces every W_h by the Q of its Householder QR with a diagonal of R that is not negative. The
/// signs make Q unique at full rank: orthonormal columns come back as themselves to rounding, and a
/// matrix of independent normals gives Haar measure, which the signs of the bare algorithm would
/// not (Mezzadri, "How to generate random matrices from the classical compact groups", Notices of
/// the AMS, 2007).
void orthonormalise_each(HeadFrames& frames);

/// Largest element of |W^T W - I| for W [d][k].
double off_orthonormal(const Rows& w);

/// The first column of W [d][k], k <= d, that depends on those before it to rounding.
std::optional<std::size_t> dependent_column(const Rows& w);

}  // namespace headlab
