// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/regression/regression.h"

namespace headlab {

/// m(x) = 0: what is left is noise alone.
struct ZeroRegression : NoParameters {
  static constexpr const char* name = "zero";
  static constexpr const char* summary = "m(x) = 0";
  static constexpr const char* equation = "m(x) = 0";
  void check(int) const {}

  /// The largest |m(x)|.
  double bound() const { return 0; }

  struct Function {
    bool operator==(const Function&) const = default;
    template <class Number, class T, class Row>
    HEADLAB_HD T operator()(const Number*, const T*, std::ptrdiff_t, const Row&) const {
      return T(0);
    }
  };

  Function function(Table&, int) const { return {}; }
};

}  // namespace headlab
