// SPDX-License-Identifier: Apache-2.0
/// \file The arithmetic of stacks in SIMD.
#pragma once

#include "kernels/stack/arithmetic.h"

namespace headlab {

/// Products of one chain of fused multiply-adds per element, in the order of the summation, so that
/// AVX2 and AVX-512 have the same bits; the same for exponentials. Normals have the bits of
/// plain_arithmetic().
const StackArithmetic& cpu_stack_arithmetic();

}  // namespace headlab
