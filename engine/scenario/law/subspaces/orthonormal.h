// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/linear_algebra.h"

namespace headlab {

/// Replaces every W_h by the Q of its signed_qr().
void orthonormalise_each(Subspaces& subspaces);

/// Largest element of |W^T W - I| for W [d][k].
double off_orthonormal(const Rows& w);

/// The first column of W [d][k], k <= d, that depends on those before it to rounding.
std::optional<std::size_t> dependent_column(const Rows& w);

}  // namespace headlab
