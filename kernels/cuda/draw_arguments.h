// SPDX-License-Identifier: Apache-2.0
/// \file Arguments of the kernel that draws training sets, with the laws that it draws from.
#pragma once

#include <cstdint>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device_variant.h"
#include "kernels/laws.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

struct DrawArguments {
  TrainingSets sets;
  TokenNumbers tokens;       ///< of which points are drawn
  std::uint64_t stride = 1;  ///< points of a token
  std::uint64_t seed = 0;
  std::uint64_t design_seed = 0;
  bool fixed_design = false;
  bool sequence = false;  ///< points depend on one another by `ar1`
  Ar1 ar1;
  Purpose design_purpose = Purpose::design;
  Purpose choice_purpose = Purpose::design_choice;
  Purpose noise_purpose = Purpose::noise;
  bool draws_noise = false;
  std::uint64_t first_replicate = 0;
  std::int64_t replicates = 0;
  DeviceVariant<DesignSampler::variant> design;
  DeviceVariant<RegressionFunction::variant> regression;
  DeviceVariant<NoiseSampler::variant> noise;
  const float* table = nullptr;
  const float* design_table = nullptr;  ///< of `design` alone: rows of a data file, or `table`
  float value_centre = 0;
  float scale_factor = 1;  ///< 1 over the unit of the noise scales, a power of two
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
