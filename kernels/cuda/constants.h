// SPDX-License-Identifier: Apache-2.0
/// \file Numbers of a plan on the device, copied there once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/runtime.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Constants of a plan, in the stream's memory for them. Throws OutOfMemory where it does not
/// suffice.
struct Constants {
  /// \param lower_parts false: those of numbers for the tensor cores are 0, see Options
  Constants(const Plan& plan, const LaunchPlan& launch, Stream& stream, bool lower_parts = true);

  std::optional<double> norm_coefficient;  ///< of the kernel law, where it has a product form
  float value_centre = 0;   ///< subtracted from the values, so that the rest has the digits
  double token_centre = 0;  ///< the same of tokens
  /// Power of two near s(X), in units of which noise scales are kept; 1 where s is constant or
  /// noise is drawn. Squares of small weights times small s would underflow.
  double noise_unit = 1;
  // On the device.
  std::span<const float> table;
  std::span<const float> file_rows;    ///< of Table::rows()
  std::span<const float> centre;       ///< [d], see centre_of
  std::span<const float> projections;  ///< of struct ProjectArguments, in the units of the keys
  Projections projections_of_tiles;    ///< where keys are projected as they are weighed
  std::span<const double> head_weights;
  Queries queries;
  // Of exact controls; empty without.
  ControlArrays controls;
  /// [2][Q][H], what exponents lack of log2 of the kernel values: those of the fast kernels, then
  /// those of the fallback, whose shifts come on top.
  std::span<const double> left_out;
  std::span<const TokenRange> ranges;  ///< of the tokens stored; empty: all from the first on
  // Of heads that see or keep a part of the tokens; empty without.
  std::span<const SeenTokens> seen;    ///< [H], positions
  std::span<const std::uint64_t> top;  ///< [H], of stage `keep`
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
