// SPDX-License-Identifier: Apache-2.0
/// \file The CPU backend: float32 in SIMD, chosen for the machine at run time; float64 across
/// segments of keys and across replicates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace headlab {

std::unique_ptr<Backend> make_cpu_backend();

/// Estimates and gradients of heads that are learned, with sums over panels of keys in float64, on
/// `threads` threads; the bits do not depend on their number. The kernel must have a
/// norm_coefficient.
std::unique_ptr<HeadGradients> make_cpu_gradients(const KernelLaw& kernel, int threads);

/// Highway's codes of the SIMD targets this machine can run, the fastest first, and a code's name.
std::vector<std::int64_t> cpu_targets();
std::string cpu_simd_name(std::int64_t target);

/// Has the backend, and all of the process, use the SIMD target of this name, or of this code, from
/// now on; 0 is the fastest. Throws std::invalid_argument where the machine or this build does not
/// have the name.
void use_cpu_simd(const std::string& name);
void use_cpu_target(std::int64_t target);

}  // namespace headlab
