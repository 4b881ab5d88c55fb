// SPDX-License-Identifier: Apache-2.0
/// \file ConditionEstimates of heads that are learned, and their gradients, in float64.
#pragma once

#include <memory>

#include "kernels/laws.h"
#include "kernels/learning/head_gradients.h"

namespace headlab {

/// Serial, by the formulas of kernels/learning/head_gradients.h. The kernel must have a
/// norm_coefficient.
std::unique_ptr<HeadGradients> make_reference_gradients(const KernelLaw& kernel);

}  // namespace headlab
