// SPDX-License-Identifier: Apache-2.0
#include "kernels/law/kernel/kernel_law.h"

namespace HEADLAB_LAW_NAMESPACE {

/// K(r) = exp(-r^2 / (2 b^2)), r = length of W_h^T (x - X).
struct GaussianKernel {
  static constexpr const char* name = "gaussian";
  static constexpr const char* summary = "exp(-r^2 / (2 b^2)), r = |W_h^T (x - X)|";
  static constexpr const char* equation = "K_h(X) = exp(- frac{r^2}{2 b^2}), r = |W_h^T (x - X)|";
  static constexpr const char* example = "bandwidth = 1";
  static constexpr bool has_key_prior = false;
  static constexpr bool counts_empty_windows = true;
  /// With query q and key k in units of b: log K = q.k + norm_coefficient (|q|^2 + |k|^2) / 2.
  static constexpr double norm_coefficient = -1;

  double bandwidth = 1;  ///< b

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("bandwidth", bandwidth, within(1e-6, 1e6), "b, in units of the design");
  }
  double length_scale() const { return bandwidth; }

  /// Natural log of the kernel at squared distance u = r^2 / b^2.
  template <class T>
  HEADLAB_HD T log_weight(T u) const {
    return u * T(-0.5);
  }
};

}  // namespace HEADLAB_LAW_NAMESPACE
