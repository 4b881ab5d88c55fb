// SPDX-License-Identifier: Apache-2.0
#include "kernels/law/kernel/kernel_law.h"

namespace HEADLAB_LAW_NAMESPACE {

/// K(r) = exp(-r/b).
struct LaplaceKernel {
  static constexpr const char* name = "laplace";
  static constexpr const char* summary = "exp(-r/b)";
  static constexpr const char* equation = "K_h(X) = exp(- r / b), r = |W_h^T (x - X)|";
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
  HEADLAB_HD T log_weight(T u) const {
    using math::sqrt;
    return sqrt(u) * T(-1);
  }
};

}  // namespace HEADLAB_LAW_NAMESPACE
