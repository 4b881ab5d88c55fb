// SPDX-License-Identifier: Apache-2.0
/// \file The arithmetic of attention with vector values in SIMD: lanes of float or double, sums
/// over keys in double.
#pragma once

#include <cstddef>

#include "kernels/cpu/lane_rows.h"

namespace headlab {

/// Logits below this are those of keys that are not seen: an additive mask has the lowest number of
/// its type, which is -65504 of float16.
inline constexpr double unseen_logit = -6e4;

/// How products q.k of one query become weights.
template <class T>
struct SoftmaxRow {
  double scale = 1;
  double softcap = 0;  ///< 0: none
  /// Added after the cap: slope (first + s) for key s of the row, then bias[s].
  double slope = 0, first = 0;
  const T* bias = nullptr;                ///< [n] or null
  const unsigned char* unseen = nullptr;  ///< [n], not 0: no weight; or null
  bool has_sink = false;
  double sink = 0;  ///< logit that takes a share of the weight
  /// Logits that are not above it are those of keys that are not seen.
  double lowest = unseen_logit;
};

template <class T>
class LaneArithmetic {
 public:
  /// out = a b, with lanes of T for 256 terms of a sum at a time and sums of these in T, or in
  /// double as in the other products into double.
  virtual void product(LaneRows<const T> a, LaneRows<const T> b, LaneRows<T> out) const = 0;
  virtual void product_in_double(LaneRows<const T> a, LaneRows<const T> b,
                                 LaneRows<double> out) const = 0;
  /// Lays a factor, or the transpose of one, out in panels, in the memory of those before.
  virtual void lay_out(LaneRows<const T> b, Panels<T>& panels) const = 0;
  virtual void lay_out_transposed(LaneRows<const T> b, Panels<T>& panels) const = 0;
  /// The same products with a right factor in panels.
  virtual void product(LaneRows<const T> a, PanelPart<T> b, LaneRows<T> out) const = 0;
  virtual void product_in_double(LaneRows<const T> a, PanelPart<T> b,
                                 LaneRows<double> out) const = 0;
  virtual void product_of_columns(LaneRows<const T> a, PanelPart<T> b,
                                  LaneRows<double> out) const = 0;
  /// out_ij = sum_k (a_ik - b_kj)^2, added up in the same way.
  virtual void distances(LaneRows<const T> a, PanelPart<T> b, LaneRows<T> out) const = 0;
  /// out += a^T b and out = a^T b.
  virtual void add_product_of_columns(LaneRows<const T> a, LaneRows<const T> b,
                                      LaneRows<T> out) const = 0;
  virtual void product_of_columns(LaneRows<const T> a, LaneRows<const T> b,
                                  LaneRows<double> out) const = 0;
  /// products[h][l] = sum_i a_hi a_li and differences[h][l] = sum_i |a_hi - a_li| of the rows of a,
  /// for l <= h; with 64 terms to a lane before a sum goes on in double.
  virtual void compare_rows(LaneRows<const T> a, double* products, double* differences) const = 0;

  /// Turns n products into weights, in their place. Returns the logarithm of the sum of
  /// exponentials, that of the sink with them; where no key is seen all weights are 0 and it is
  /// -infinity.
  virtual double softmax(const SoftmaxRow<T>& row, T* numbers, std::size_t n) const = 0;
  /// Derivatives by the logits of n weights from those by the weights, in their place, and that by
  /// the logarithm of their sum: w_i (g_i - f) with f = sum_i w_i g_i - by_log_sum, which it
  /// returns.
  virtual double softmax_slopes(const T* weights, T* slopes, std::size_t n,
                                double by_log_sum) const = 0;
  /// From derivatives by n capped logits c tanh(u / c), u = scale x, to those by u, in their place.
  /// Returns the derivative by c.
  virtual double cap_slopes(double scale, double softcap, const T* products, T* slopes,
                            std::size_t n) const = 0;

 protected:
  ~LaneArithmetic() = default;
  /// For a panel of the right factor, kept by the thread.
  static T* panel();
};

/// Defined for float and double.
template <class T>
const LaneArithmetic<T>& lane_arithmetic();

}  // namespace headlab
