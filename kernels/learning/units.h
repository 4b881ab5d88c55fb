// SPDX-License-Identifier: Apache-2.0
/// \file Units of keys and queries on the fast backends while heads are learned.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <vector>

#include "kernels/kernel_laws.h"
#include "kernels/learning/head_gradients.h"

namespace headlab {

/// norm_coefficient_of(kernel); throws std::invalid_argument for a law that has none.
inline double learnable_norm_coefficient(const KernelLaw& kernel) {
  const std::optional<double> share = norm_coefficient_of(kernel);
  if (!share) throw std::invalid_argument("heads cannot be learned through this kernel");
  return *share;
}

/// Units of projected queries u and keys v in which log2 K needs no factor: -|u - v|^2 where
/// norm_coefficient is -1 (Gaussian), u.v where it is 0 (softmax); and the factors from sums of c u
/// and c v in them to the gradients of HeadGradients.
struct FitUnits {
  double norm_coefficient;
  double key_unit, query_unit;
  double key_factor, query_factor;

  explicit FitUnits(const KernelLaw& kernel)
      : norm_coefficient(learnable_norm_coefficient(kernel)) {
    const double log2_e = 1 / std::log(2.0);
    const double unit2 = length_scale(kernel) * length_scale(kernel);
    if (norm_coefficient != 0) {
      key_unit = query_unit = std::sqrt(0.5 * log2_e / unit2);
      key_factor = query_factor = 1 / (unit2 * key_unit);
    } else {
      key_unit = 1;
      query_unit = log2_e / unit2;
      key_factor = 1 / log2_e;
      query_factor = 1 / unit2;
    }
  }
};

/// Means of the points [d], rounded to float32. A shift of all keys changes neither softmax weights
/// nor their gradients, nor Gaussian ones if the queries shift with them; gradients lose fewer
/// digits where X is centred.
inline std::vector<float> centre_of(const FitPoints& points, std::size_t count) {
  const auto d = static_cast<std::size_t>(points.d);
  std::vector<double> sum(d);
  for (std::size_t i = 0; i < count * d; ++i) sum[i % d] += static_cast<double>(points.x[i]);
  std::vector<float> centre;
  for (const double coordinate : sum) {
    centre.push_back(static_cast<float>(coordinate / static_cast<double>(count)));
  }
  return centre;
}

}  // namespace headlab
