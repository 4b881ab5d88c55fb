// SPDX-License-Identifier: Apache-2.0
/// \file Exact control variates: numbers of a replicate whose means are known, and what is
/// subtracted from its statistics with them.
///
/// At a query, with kernel values w_hi of the tokens that head h sees and W_h = sum_i w_hi,
///
///     d_h  = W_h / E W_h                                      E d_h = 1
///     g_h  = (mu_h - r_h) d_h,  r_h = E[sum_i w_hi m(X_i)] / E W_h      E g_h = 0
///     p_hl = S_hl W_h W_l / E[S_hl W_h W_l]                   E p_hl = 1
///
/// g_h is the linear part of mu_h, and S_hl W_h W_l = sum_i s^2(X_i) w_hi w_li. The controlled
/// statistics
///
///     mu'_h = mu_h - a_h1 (d_h - 1) - a_h2 g_h
///     S'_hl = S_hl - b_hl1 (d_h - 1) - b_hl2 (d_l - 1) - b_hl3 (p_hl - 1) - b_hl4 (g_h g_l - E g_h g_l)
///
/// have the means of mu_h and S_hl for any coefficients. S'_hl stands for the covariance of heads h
/// and l: g_h g_l follows (mu_h - E mu_h)(mu_l - E mu_l). Source: docs/controls.md.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/hd.h"
#include "kernels/moments.h"

namespace headlab {

/// Means of the controls. The kernel of law `softmax` is exp(q.k/t) here.
struct ControlMeans {
  std::vector<double> log_sum;   ///< [Q][H], log E W_h
  std::vector<double> estimate;  ///< [Q][H], r_h
  /// [Q][P], E W_h E W_l / E[S_hl W_h W_l]; 0 where there is no noise.
  std::vector<double> noise_scale;
  std::vector<double> product;         ///< [Q][P], E g_h g_l
  std::vector<double> sum_variance;    ///< [Q][H], Var d_h
  std::vector<double> sum_covariance;  ///< [Q][H], E d_h g_h

  bool operator==(const ControlMeans&) const = default;
};

/// Controls of mu_h: d_h and g_h.
inline constexpr std::size_t estimate_controls = 2;
/// Controls of S_hl: d_h, d_l, p_hl and g_h g_l.
inline constexpr std::size_t noise_controls = 4;

/// What a plan says of its controls.
struct Controls {
  ControlMeans means;
  std::vector<double> of_estimates = {};  ///< [Q][H][estimate_controls]; empty: not known yet
  std::vector<double> of_noise = {};      ///< [Q][P][noise_controls]

  bool has_coefficients() const { return !of_estimates.empty(); }
};

/// Where the numbers of a query lie.
class QueryControls {
 public:
  QueryControls(const Controls& controls, const MomentLayout& layout, std::size_t query)
      : controls_(controls),
        layout_(layout),
        first_head_(query * static_cast<std::size_t>(layout.heads)),
        first_pair_(query * layout.pairs()) {}

  /// d_h from log W_h; -inf, the logarithm of no weight at all, gives 0.
  double sum(std::size_t h, double log_weight_sum) const {
    return std::exp(log_weight_sum - controls_.means.log_sum[first_head_ + h]);
  }
  /// d_h - 1 and g_h.
  std::array<double, estimate_controls> of_estimate(std::size_t h, double estimate,
                                                    double sum) const {
    return {sum - 1, (estimate - controls_.means.estimate[first_head_ + h]) * sum};
  }
  /// d_h - 1, d_l - 1, p_hl - 1 and g_h g_l - E g_h g_l, from those of the two heads.
  std::array<double, noise_controls> of_noise(
      std::size_t h, std::size_t l, double noise,
      const std::array<double, estimate_controls>& of_h,
      const std::array<double, estimate_controls>& of_l) const {
    const std::size_t pair = first_pair_ + layout_.pair(h, l);
    const double scale = controls_.means.noise_scale[pair];
    return {of_h[0], of_l[0], noise * (1 + of_h[0]) * (1 + of_l[0]) * scale - 1,
            of_h[1] * of_l[1] - controls_.means.product[pair]};
  }
  const double* estimate_coefficients(std::size_t h) const {
    return &controls_.of_estimates[(first_head_ + h) * estimate_controls];
  }
  const double* noise_coefficients(std::size_t h, std::size_t l) const {
    return &controls_.of_noise[(first_pair_ + layout_.pair(h, l)) * noise_controls];
  }

 private:
  const Controls& controls_;
  const MomentLayout& layout_;
  std::size_t first_head_;
  std::size_t first_pair_;
};

/// y less coefficients times controls. A control without coefficient is not looked at: it may be
/// infinite.
template <std::size_t Count>
double controlled(double y, const double* coefficients, const std::array<double, Count>& controls) {
  for (std::size_t c = 0; c < Count; ++c) {
    if (coefficients[c] != 0) y -= coefficients[c] * controls[c];
  }
  return y;
}

/// Sets the statistics of a query that follow those without controls (ControlStatistics).
/// \param weight_sums log W_h [H]; becomes d_h
/// \param head_weights a_h [H]
void set_controlled(const Controls& controls, const MomentLayout& layout, std::size_t query,
                    std::span<double> weight_sums, std::span<const double> head_weights,
                    double* statistics);

}  // namespace headlab
