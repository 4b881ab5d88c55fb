// SPDX-License-Identifier: Apache-2.0
/// \file What every noise law is made of.
///
/// The noise on a training point is e = scale(x) * unit(words): `unit` draws from the four random
/// integers of the point with mean 0 and variance 1, `scale` is the standard deviation s(x), the
/// same for all x where `constant_scale`. Where `normal`, unit(words) is the first of
/// normal_pair(words 0 and 1).
#pragma once

#include <cstddef>

#include "kernels/draws.h"
#include "kernels/hd.h"
#include "kernels/law/regression/regression.h"
#include "kernels/math.h"
#include "kernels/parameter.h"
#include "kernels/philox.h"
#include "kernels/table.h"

namespace headlab {

/// The scale of homoscedastic noise.
struct ConstantScale {
  static constexpr bool constant_scale = true;
  double sd = 0;
  bool operator==(const ConstantScale&) const = default;
  template <class Number, class T>
  HEADLAB_HD T scale(const Number*, const T*, std::ptrdiff_t) const {
    return T(sd);
  }
};

}  // namespace headlab
