// SPDX-License-Identifier: Apache-2.0
/// \file What the CUDA backend computes for a fit.
#pragma once

#include <memory>

#include "kernels/cuda/worker.h"
#include "kernels/laws.h"
#include "kernels/learning/head_gradients.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Estimates and gradients on a device: float32 within tiles of keys and queries, float64 across
/// them. The training set stays there; points of a batch, heads and factors go up with each call,
/// estimates and gradients come down. The same bits from run to run on devices of one model. The
/// kernel must have a norm_share. Throws DeviceError where memory does not suffice.
std::unique_ptr<HeadGradients> make_cuda_gradients(const KernelLaw& kernel, int device,
                                                   const Options& options,
                                                   std::shared_ptr<StreamPool> streams);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
