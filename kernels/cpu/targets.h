// SPDX-License-Identifier: Apache-2.0
/// \file The SIMD targets of the CPU backend: AVX-512, AVX2 and a portable fallback. Targets
/// between them gain little.
///
/// A file x.cpp that is compiled once for each target has, after its other includes,
///
///     #include "kernels/cpu/targets.h"
///     #undef HWY_TARGET_INCLUDE
///     #define HWY_TARGET_INCLUDE "kernels/cpu/x.cpp"
///     #include <hwy/foreach_target.h>
///
/// then its -inl.h files, its code between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, which is
/// compiled for each target in a namespace of its own, and the rest under HWY_ONCE. Names of a
/// target's namespace that one file defines and another uses are declared in an -inl.h file; what
/// only one file sees is in an anonymous namespace.
#pragma once

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
