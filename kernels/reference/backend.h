// SPDX-License-Identifier: Apache-2.0
/// \file The serial float64 backend: the definition that every fast path is tested against. It is
/// written to be read, and never tuned.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace headlab {

std::unique_ptr<Backend> make_reference_backend();

/// Estimates and gradients of heads that are learned, by the formulas of
/// kernels/learning/head_gradients.h. The kernel must have a norm_coefficient.
std::unique_ptr<HeadGradients> make_reference_gradients(const KernelLaw& kernel);

}  // namespace headlab
