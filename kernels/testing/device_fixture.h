// SPDX-License-Identifier: Apache-2.0
/// \file Fixture of tests of the CUDA backend that run on a GPU and on the host.
#pragma once

#if defined(HEADLAB_EMULATE_CUDA)
#include "kernels/testing/emulated_backend.h"
namespace headlab::emulated_cuda {
using OnDevice = Cuda;
}
#else
#include "kernels/testing/gpu_fixture.h"
namespace headlab::cuda {
using OnDevice = GpuBackend;
}
#endif
