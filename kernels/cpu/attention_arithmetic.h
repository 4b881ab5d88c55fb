// SPDX-License-Identifier: Apache-2.0
/// \file The arithmetic of attention with vector values in SIMD: lanes of float or double, sums
/// over keys in double.
#pragma once

#include <cstddef>

namespace headlab {

/// Rows of numbers, each contiguous.
template <class T>
struct LaneRows {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;  ///< from row to row

  T* row(std::size_t i) const { return data + i * stride; }
};

/// out = a b, with lanes of T for 256 terms of a sum at a time and sums of these in Out.
/// Defined for (float, float), (float, double) and (double, double).
template <class T, class Out>
void lane_product(LaneRows<const T> a, LaneRows<const T> b, LaneRows<Out> out);

/// out_ij = sum_k (a_ik - b_kj)^2, summed likewise.
template <class T>
void lane_distances(LaneRows<const T> a, LaneRows<const T> b, LaneRows<T> out);

/// out += a^T b.
template <class T>
void add_lane_product_of_columns(LaneRows<const T> a, LaneRows<const T> b, LaneRows<T> out);

/// out = a^T b, with sums as of lane_product. Defined for (float, double) and (double, double).
template <class T, class Out>
void lane_product_of_columns(LaneRows<const T> a, LaneRows<const T> b, LaneRows<Out> out);

/// out = a b^T.
template <class T, class Out>
void lane_product_transposed(LaneRows<const T> a, LaneRows<const T> b, LaneRows<Out> out);

/// sums[h][l] = sum_i |a_hi - a_li| of the rows of a, for l < h; with 64 terms to a lane before a
/// sum goes on in double.
template <class T>
void absolute_differences(LaneRows<const T> a, double* sums);

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

/// Turns n products into weights, in their place. Returns the logarithm of the sum of exponentials,
/// that of the sink with them; where no key is seen all weights are 0 and it is -infinity.
template <class T>
double softmax_row(const SoftmaxRow<T>& row, T* numbers, std::size_t n);

/// Derivatives by the logits of n weights from those by the weights, in their place, and that by
/// the logarithm of their sum: w_i (g_i - f) with f = sum_i w_i g_i - by_log_sum, which it returns.
template <class T>
double softmax_slopes(const T* weights, T* slopes, std::size_t n, double by_log_sum);

/// From derivatives by n capped logits c tanh(u / c), u = scale x, to those by u, in their place.
/// Returns the derivative by c.
template <class T>
double cap_slopes(double scale, double softcap, const T* products, T* slopes, std::size_t n);

}  // namespace headlab
