// SPDX-License-Identifier: Apache-2.0
/// \file The CPU backend: float32 in SIMD, chosen for the machine at run time; float64 across
/// blocks of keys and across replicates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace headlab {

std::unique_ptr<Backend> make_cpu_backend();

/// The design points of a replicate as this backend draws them, x [n][d], for tests of the draws.
std::vector<float> draw_design_cpu(const Plan& plan, std::uint64_t replicate);

/// Highway's codes of the SIMD targets this machine can run, the fastest first, and a code's name.
std::vector<std::int64_t> cpu_targets();
std::string cpu_simd_name(std::int64_t target);

/// 2^t as the kernel loop computes it, for tests of its error.
void exp2_cpu(const float* t, float* out, std::size_t count);

}  // namespace headlab
