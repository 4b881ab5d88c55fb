// SPDX-License-Identifier: Apache-2.0
// The window of a head at a query: sums over keys, and how its exponents are taken.
#if defined(HEADLAB_CPU_WINDOW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_WINDOW_INL_H
#undef HEADLAB_CPU_WINDOW_INL_H
#else
#define HEADLAB_CPU_WINDOW_INL_H
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include <hwy/highway.h>

#include "kernels/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Sums over the keys of one head and query.
struct Sums {
  double weight = 0;          ///< sum w
  double weighted_value = 0;  ///< sum w (value - centre)
  double weight_squared = 0;  ///< sum w^2, where it is needed
  double noise = 0;           ///< sum s^2 w^2 in aggregate mode where s varies, s in noise units
  double weight_again = 0;    ///< sum w of the weights that were kept, in replicates checked so
  std::uint64_t kept = 0;     ///< keys with weight, conditional with stage `keep`
};

inline constexpr std::int64_t no_key = -1;

struct Window {
  Sums sums;
  float exponent_offset = 0;  ///< integer added to all exponents: a constant factor of the weights
#if HWY_TARGET <= HWY_AVX3
  StoredExp2 exp2;  ///< with `exponent_offset`, where that is at least -max_plain_offset
#endif
  double query_exponent = 0;       ///< left out of exponents from inner products
  float reach2 = 0;                ///< |key|^2 up to which exponents need no clamp
  float norm = 0;                  ///< softmax: |exponent| <= norm |key|
  bool repaired = false;           ///< exponents are taken relative to `shift`
  bool sum_again = false;          ///< is summed again in the pass `repair`
  float shift = 0;                 ///< the largest exponent probed
  float nearest = 0;               ///< the least squared distance probed
  std::int64_t only_key = no_key;  ///< all other keys have weight zero

  /// Natural logarithm of the sum of the kernel's values, of which `sums` may have a factor.
  double log_weight_sum() const {
    constexpr double log_2 = 0.6931471805599453;
    if (repaired && only_key != no_key) return -std::numeric_limits<double>::infinity();
    const double exponent = repaired ? static_cast<double>(shift)
                                     : query_exponent - static_cast<double>(exponent_offset);
    return std::log(sums.weight) + log_2 * exponent;
  }

  void set_exponent_offset(float offset) {
    exponent_offset = offset;
#if HWY_TARGET <= HWY_AVX3
    if (offset >= -max_plain_offset) exp2 = StoredExp2(offset);
#endif
  }
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
