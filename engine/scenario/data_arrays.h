// SPDX-License-Identifier: Apache-2.0
/// \file Arrays in memory that a scenario names where it would name data files.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headlab {

/// Row-major numbers [shape] in memory of the caller's, float32 or float64.
struct DataArray {
  std::vector<std::size_t> shape;
  const float* single = nullptr;  ///< one of the two
  const double* exact = nullptr;
  std::shared_ptr<const void> owner = {};  ///< keeps the numbers

  std::size_t size() const {
    std::size_t product = 1;
    for (const std::size_t length : shape) product *= length;
    return product;
  }
  double operator[](std::size_t i) const {
    return single ? static_cast<double>(single[i]) : exact[i];
  }
};

/// By the path that stands in the scenario.
using DataArrays = std::map<std::string, DataArray>;

}  // namespace headlab
