// SPDX-License-Identifier: Apache-2.0
/// \file ConditionEstimates and gradients of heads that are learned, on a device.
#pragma once

#include <memory>

#include "kernels/cuda/options.h"
#include "kernels/cuda/stream_pool.h"
#include "kernels/learning/head_gradients.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// ConditionEstimates and gradients on a device: float32 within tiles of keys and queries, float64
/// across them. The training set stays on the device; each call copies points of a batch, heads and
/// factors there, and estimates and gradients back. The same bits from run to run on devices of one
/// model. The kernel must have a norm_coefficient. Throws DeviceError where memory does not
/// suffice.
std::unique_ptr<HeadGradients> make_cuda_gradients(const KernelLaw& kernel, int device,
                                                   const Options& options,
                                                   std::shared_ptr<StreamPool> streams);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
