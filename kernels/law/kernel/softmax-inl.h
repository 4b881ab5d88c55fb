// SPDX-License-Identifier: Apache-2.0
#include "kernels/law/kernel/kernel_law.h"

namespace HEADLAB_LAW_NAMESPACE {

/// K = exp((W_h^T x).(W_h^T X) / t). With q, k the projected query and key,
/// q.k/t = -|q - k|^2/(2t) + |k|^2/(2t) + |q|^2/(2t): the Gaussian kernel of b^2 = t with prior
/// exp(|k|^2/(2t)) on the key, up to a factor exp(|q|^2/(2t)) that normalisation removes.
struct SoftmaxKernel {
  static constexpr const char* name = "softmax";
  static constexpr const char* summary = "exp((W_h^T x).(W_h^T X) / t)";
  static constexpr const char* equation = "K_h(X) = exp(frac{(W_h^T x) · (W_h^T X)}{t})";
  static constexpr const char* example = "temperature = 1";
  static constexpr bool has_key_prior = true;
  static constexpr bool counts_empty_windows = false;
  /// With query q and key k in units of sqrt(t): log K = q.k + norm_coefficient (|q|^2 + |k|^2)
  /// / 2.
  static constexpr double norm_coefficient = 0;

  double temperature = 1;  ///< t

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("temperature", temperature, within(1e-6, 1e6), "t, sqrt(d_k) in Transformers");
  }

  double length_scale() const { return std::sqrt(temperature); }

  // The bounds keep -inf + inf out of the sum of the two for any finite design.
  template <class T>
  HEADLAB_HD T log_weight(T u) const {
    using math::max;
    return max(u * T(-0.5), T(-1e38));
  }
  /// Log of the prior on a key of squared projected norm `norm2`, in units of t.
  template <class T>
  HEADLAB_HD T log_prior(T norm2) const {
    using math::min;
    return min(norm2 * T(0.5), T(1e38));
  }
};

}  // namespace HEADLAB_LAW_NAMESPACE
