// SPDX-License-Identifier: Apache-2.0
/// \file The arithmetic of stacks in SIMD.
#pragma once

#include "kernels/stack/arithmetic.h"

namespace headlab {

struct Plan;

/// Products have one chain of fused multiply-adds for each element, in the order of the summation,
/// and sums along a row eight chains that are added in a fixed tree, so that AVX2 and AVX-512 have
/// the same bits; exponentials and logarithms are Highway's. Normals and design points have the
/// bits of plain_arithmetic().
const StackArithmetic& cpu_stack_arithmetic();

/// stack_tokens(), drawn in SIMD.
Eigen::MatrixXd cpu_stack_tokens(const Plan& plan, std::uint64_t replicate);

}  // namespace headlab
