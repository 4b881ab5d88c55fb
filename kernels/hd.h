// SPDX-License-Identifier: Apache-2.0
/// \file Marks functions that run on the host and on a device. On the host they are always inlined,
/// so that a caller compiled for AVX2 or AVX-512 gets them in its own instructions.
#pragma once

#if defined(__CUDACC__)
#define HEADLAB_HD __host__ __device__ __forceinline__
#else
#define HEADLAB_HD inline __attribute__((always_inline))
#endif
