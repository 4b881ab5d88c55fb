// SPDX-License-Identifier: Apache-2.0
/// \file What every design law is made of.
///
/// A sampler turns base draws into one design point in place: on entry `x` holds 4 ceil(d/4) base
/// draws, on return the point X in its first d places; element j stands at x[j * stride]. `word` is
/// one more random integer, for laws that choose (`chooses`). The return value is the row chosen
/// from a data file, else 0. T is float32, or, for laws that do not choose, also a tile of float32
/// points side by side. Explicit fused multiply-adds: the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/counted.h"
#include "kernels/draws.h"
#include "kernels/hd.h"
#include "kernels/math.h"
#include "kernels/parameter.h"
#include "kernels/table.h"
#include "kernels/tile.h"

namespace headlab {

enum class BaseDraw {
  normal,   ///< independent N(0, 1)
  uniform,  ///< independent, uniform on (-1, 1)
  none      ///< nothing is drawn
};

/// x <- mean + L x for a lower triangular L [d][d], in place from the last coordinate up.
template <class T>
HEADLAB_HD void affine_in_place(const float* mean, const float* factor, int d, T* x,
                                std::ptrdiff_t stride) {
  for (int i = d - 1; i >= 0; --i) {
    T sum(mean[i]);
    for (int j = 0; j <= i; ++j) sum = math::fused(factor[i * d + j], x[j * stride], sum);
    x[i * stride] = sum;
  }
}

/// Throws unless an optional array is absent (size 0) or has `wanted` elements.
inline void require_size(const std::string& key, std::size_t size, int wanted) {
  if (size != 0 && size != static_cast<std::size_t>(wanted)) {
    throw ParameterError(key,
                         "has " + counted(size, "element") + ", needs " + std::to_string(wanted));
  }
}

}  // namespace headlab
