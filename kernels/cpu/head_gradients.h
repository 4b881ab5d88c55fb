// SPDX-License-Identifier: Apache-2.0
/// \file ConditionEstimates of heads that are learned, and their gradients, in SIMD.
#pragma once

#include <memory>

#include "kernels/laws.h"
#include "kernels/learning/head_gradients.h"

namespace headlab {

/// ConditionEstimates and gradients in float32, with sums over panels of keys in float64, on
/// `threads` threads; the bits do not depend on their number. The kernel must have a
/// norm_coefficient.
std::unique_ptr<HeadGradients> make_cpu_gradients(const KernelLaw& kernel, int threads);

}  // namespace headlab
