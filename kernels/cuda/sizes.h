// SPDX-License-Identifier: Apache-2.0
/// \file Products of sizes. Kernels number places by an int: where a product does not fit in one,
/// the condition is refused.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/cuda/device.h"

namespace headlab {
struct Plan;
}

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// The product of the sizes. Throws std::invalid_argument, with what there would be too many of,
/// where it reaches 2^31.
inline int count_of(const char* what, std::initializer_list<std::uint64_t> sizes) {
  constexpr std::uint64_t most = std::numeric_limits<int>::max();
  std::uint64_t product = 1;
  bool fits = true;
  for (const std::uint64_t size : sizes) {
    fits = fits && size <= most && product * size <= most;
    if (fits) product *= size;
  }
  if (fits) return static_cast<int>(product);
  std::string text;
  for (const std::uint64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  throw std::invalid_argument("backend cuda: " + text + " " + what +
                              " are 2^31 or more - use --backend cpu");
}

inline std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

/// Sizes of a plan, or at most so many.
struct PlanSizes {
  std::uint64_t d = 1, heads = 1, k = 1, queries = 1;
  bool pairs = false;  ///< of heads have sums
};

/// Throws std::invalid_argument where a product that a kernel or its constants number does not fit
/// in an int, with what is padded counted in full.
void check_sizes(const PlanSizes& sizes);
void check_sizes(const Plan& plan);

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
