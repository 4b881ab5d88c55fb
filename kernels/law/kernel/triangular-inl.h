// SPDX-License-Identifier: Apache-2.0
#include "kernels/law/kernel/kernel_law.h"

namespace HEADLAB_LAW_NAMESPACE {

/// K(r) = (1 - r/b)_+ : no weight beyond r = b, and a kink at the query.
struct TriangularKernel {
  static constexpr const char* name = "triangular";
  static constexpr const char* summary = "(1 - r/b)_+";
  static constexpr const char* equation = "K_h(X) = (1 - r / b)_+, r = |W_h^T (x - X)|";
  static constexpr const char* example = "bandwidth = 1";
  static constexpr bool has_key_prior = false;
  static constexpr bool counts_empty_windows = true;

  double bandwidth = 1;  ///< b

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("bandwidth", bandwidth, within(1e-6, 1e6), "b, in units of the design");
  }
  double length_scale() const { return bandwidth; }

  template <class T>
  HEADLAB_HD T weight(T u) const {
    using math::max;
    using math::sqrt;
    return max(T(1) - sqrt(u), T(0));
  }
  template <class T>
  HEADLAB_HD T log_weight(T u) const {
    using math::log;
    return log(weight(u));
  }
};

}  // namespace HEADLAB_LAW_NAMESPACE
