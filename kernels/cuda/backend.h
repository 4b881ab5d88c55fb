// SPDX-License-Identifier: Apache-2.0
/// \file The CUDA backend: float32 on GPUs, float64 from the sums of a few hundred keys on. It
/// draws the training sets of every other backend, and its results have the same bits from run to
/// run, for any batch and for any number of devices of one model.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/options.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Every usable device of this machine. A worker has one plan. Throws Unavailable where there is
/// none.
std::unique_ptr<Backend> make_cuda_backend(const Options& options = {});

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
