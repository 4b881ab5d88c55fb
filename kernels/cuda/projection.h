// SPDX-License-Identifier: Apache-2.0
/// \file Matrices of projections as projection.cu reads them.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/hd.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Coordinates of a key that a thread computes side by side: 4, 8 or 16, with the least padding.
HEADLAB_HD constexpr int projection_step(int outputs) {
  int best = 4;
  for (const int step : {8, 16}) {
    if ((outputs + step - 1) / step * step <= (outputs + best - 1) / best * best) best = step;
  }
  return best;
}
/// Floats from one row of a matrix to the next.
HEADLAB_HD constexpr int projection_width(int outputs) {
  const int step = projection_step(outputs);
  return (outputs + step - 1) / step * step;
}

/// Rows [outputs][d] as a matrix [d][projection_width(outputs)], padded with zeros.
inline std::vector<float> projection_columns(const std::vector<float>& rows, int d) {
  const auto depth = static_cast<std::size_t>(d);
  const std::size_t outputs = rows.size() / depth;
  const auto width = static_cast<std::size_t>(projection_width(static_cast<int>(outputs)));
  std::vector<float> columns(depth * width);
  for (std::size_t output = 0; output < outputs; ++output) {
    for (std::size_t c = 0; c < depth; ++c) columns[c * width + output] = rows[output * depth + c];
  }
  return columns;
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
