// SPDX-License-Identifier: Apache-2.0
/// \file Numbers of a plan on the device, copied there once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/runtime.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// A constant array on the device. Throws DeviceError where memory does not suffice.
template <class T>
class Constant {
 public:
  Constant() = default;
  /// Copies the values, which must stay until the stream is synchronised.
  Constant(Stream& stream, std::span<const T> values)
      : memory_(std::max<std::size_t>(1, values.size()) * sizeof(T)) {
    if (memory_.empty()) {
      throw DeviceError("cuda: out of memory for the constants of a scenario (" +
                        std::to_string(values.size() * sizeof(T)) + " bytes)");
    }
    if (!values.empty()) {
      stream.copy_to_device(memory_.as<T>(), values.data(), values.size() * sizeof(T));
    }
  }
  const T* data() const { return memory_.as<T>(); }

 private:
  Memory memory_;
};

/// Constants of a plan.
struct Constants {
  Constants(const Plan& plan, const LaunchPlan& launch, Stream& stream);

  std::optional<double> norm_coefficient;  ///< of the kernel law, where it has a product form
  float value_centre = 0;   ///< subtracted from the values, so that the rest has the digits
  double token_centre = 0;  ///< the same of tokens
  /// Power of two near s(X), in units of which noise scales are kept; 1 where s is constant or
  /// noise is drawn. Squares of small weights times small s would underflow.
  double noise_unit = 1;
  Constant<float> table;
  Constant<float> file_rows;    ///< of Table::rows()
  Constant<float> centre;       ///< [d], see centre_of
  Constant<float> projections;  ///< of struct ProjectArguments, in the units of the keys
  Constant<double> head_weights;
  Queries queries;
  Constant<TokenRange> ranges;  ///< of the tokens stored; empty: all from the first on
  // Of heads that see or keep a part of the tokens; empty without.
  Constant<SeenTokens> seen;    ///< [H], positions
  Constant<std::uint64_t> top;  ///< [H], of stage `keep`

 private:
  Constant<float> query_points_, query_products_, query_shifts_;
  Constant<FourWords> query_fragments_;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
