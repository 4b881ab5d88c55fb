// SPDX-License-Identifier: Apache-2.0
/// \file Exact control variates: numbers of a replicate whose means are known, and what is
/// subtracted from its statistics with them.
///
/// At a query, with kernel values w_hi of the tokens that head h sees, W_h = sum_i w_hi, a scale
/// w_h of it, and t one of control_tilts,
///
///     d_h = W_h / w_h,                     g_h = (mu_h - r_h) d_h,
///     e_h(t) = exp(-t d_h),                p_hl = S_hl d_h d_l,
///
/// where r_h = E[sum_i w_hi m(X_i)] / E W_h, so that E g_h = 0. g_h is the linear part of mu_h, and
/// p_hl = sum_i s^2(X_i) w_hi w_li / (w_h w_l). The controls of mu_h and of S_hl are
///
///     d_h, g_h, e_h(t), g_h e_h(t)
///     d_h, d_l, p_hl, g_h g_l, e_h(t), e_l(t), p_hl e_h(t) e_l(t)     (h = l: p_hh e_h(t))
///
/// Those with e(t) are bounded, whatever the kernel sums are, and follow mu_h and S_hl where these
/// are far from linear: 1/W^2 = int_0^inf t exp(-t W) dt. The controlled statistics mu'_h and S'_hl
/// are mu_h and S_hl less coefficients times (control - its mean), and have the same means for any
/// coefficients. S'_hl stands for the covariance of heads h and l, because g_h g_l follows
/// (mu_h - E mu_h)(mu_l - E mu_l). Heads that are alike count as one: their pair has the controls
/// of S_hh. Derivation: docs/controls.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/hd.h"
#include "kernels/math.h"
#include "kernels/statistics/moments.h"

namespace headlab {

inline constexpr std::size_t tilt_count = 3;
HEADLAB_HD constexpr double control_tilt(std::size_t j) {
  return j == 0 ? 0.25 : j == 1 ? 1 : 4;
}
inline constexpr std::array<double, tilt_count> control_tilts = {control_tilt(0), control_tilt(1),
                                                                 control_tilt(2)};
/// Numbers of the controls of mu_h and S_hl, in the order above.
inline constexpr std::size_t estimate_controls = 2 + 2 * tilt_count;
inline constexpr std::size_t noise_controls = 4 + 3 * tilt_count;

/// Means of the controls, NaN where they are not known. The kernel of law `softmax` is exp(q.k/t)
/// here.
struct ControlMeans {
  std::vector<double> log_scale;     ///< [Q][H], log w_h
  std::vector<double> estimate;      ///< [Q][H], r_h
  std::vector<double> of_estimates;  ///< [Q][H][estimate_controls]
  std::vector<double> of_noise;      ///< [Q][P][noise_controls]
  // Bounds of their rounding and remainders.
  std::vector<double> estimate_errors = {};  ///< [Q][H][estimate_controls]
  std::vector<double> noise_errors = {};     ///< [Q][P][noise_controls]

  bool operator==(const ControlMeans&) const = default;
};

/// When a run uses what controls subtract from a statistic, its adjustment, and how far an
/// adjustment may be off for all replicates alike.
struct ControlUse {
  /// Least and most replicates of a run that uses an adjustment: fewer cannot test its mean, and
  /// more have a smaller standard error without it. One range for the estimates of a query. Empty:
  /// always.
  std::vector<double> estimates;  ///< [Q][2]
  std::vector<double> noise;      ///< [Q][P][2]
  /// Bounds of what the rounding of kernel sums and of exact means moves a controlled statistic by.
  std::vector<double> estimate_rounding;  ///< [Q][H]
  std::vector<double> noise_rounding;     ///< [Q][P]
  /// Cov(mu_h, mu_l) less that of their adjustments, by the pilot.
  std::vector<double> covariance_left;  ///< [Q][P]

  bool has_estimates(std::size_t q, std::uint64_t replicates) const {
    return estimates.empty() || holds(&estimates[2 * q], replicates);
  }
  /// Leaves every adjustment out.
  void never() {
    for (std::vector<double>* ranges : {&estimates, &noise}) {
      for (std::size_t i = 0; i < ranges->size(); i += 2) {
        (*ranges)[i] = 1;
        (*ranges)[i + 1] = 0;
      }
    }
  }
  /// \param pair of all queries, q P + p
  bool has_noise(std::size_t pair, std::uint64_t replicates) const {
    return noise.empty() || holds(&noise[2 * pair], replicates);
  }

  /// That of one query.
  ControlUse of_query(std::size_t q, std::size_t queries) const {
    const auto part = [&](const std::vector<double>& all) {
      const auto size = static_cast<std::ptrdiff_t>(all.size() / queries);
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(q) * size;
      return std::vector<double>(from, from + size);
    };
    return {part(estimates), part(noise), part(estimate_rounding), part(noise_rounding),
            part(covariance_left)};
  }

 private:
  static bool holds(const double* range, std::uint64_t replicates) {
    const auto count = static_cast<double>(replicates);
    return range[0] <= count && count <= range[1];
  }
};

/// Where the numbers of controls stand in memory: of the host, or of a device.
struct ControlArrays {
  // See ControlMeans.
  const double* log_scale = nullptr;
  const double* estimate = nullptr;
  const double* means_of_estimates = nullptr;
  const double* means_of_noise = nullptr;
  // See Controls.
  const double* of_estimates = nullptr;
  const double* of_noise = nullptr;
  const std::uint32_t* alike = nullptr;  ///< null: each is its own
};

/// What a plan says of its controls.
struct Controls {
  ControlMeans means;
  std::vector<double> of_estimates = {};  ///< [Q][H][estimate_controls], coefficients; empty: none
  std::vector<double> of_noise = {};      ///< [Q][P][noise_controls]
  /// [Q][H], the first head that is like head h: the same numbers in every replicate. Empty: each
  /// is its own.
  std::vector<std::uint32_t> alike = {};
  ControlUse use = {};

  bool has_coefficients() const { return !of_estimates.empty(); }
  ControlArrays arrays() const {
    return {.log_scale = means.log_scale.data(),
            .estimate = means.estimate.data(),
            .means_of_estimates = means.of_estimates.data(),
            .means_of_noise = means.of_noise.data(),
            .of_estimates = of_estimates.data(),
            .of_noise = of_noise.data(),
            .alike = alike.empty() ? nullptr : alike.data()};
  }
};

/// Numbers of one head in a replicate that controls are made of.
struct HeadNumbers {
  double sum = 0;                 ///< d_h
  double estimate = 0;            ///< g_h
  double falls[tilt_count] = {};  ///< e_h(t)
};

/// The controls of one statistic in a replicate; an array of which devices have the operators.
template <std::size_t Count>
struct ControlValues {
  double v[Count];

  HEADLAB_HD double& operator[](std::size_t c) { return v[c]; }
  HEADLAB_HD const double& operator[](std::size_t c) const { return v[c]; }
};

/// y less coefficients times controls. A control without coefficient is not looked at: it may be
/// infinite, or its mean unknown.
template <std::size_t Count>
HEADLAB_HD double controlled(double y, const double* coefficients,
                             const ControlValues<Count>& controls) {
  for (std::size_t c = 0; c < Count; ++c) {
    if (coefficients[c] != 0) y -= coefficients[c] * controls[c];
  }
  return y;
}

/// The controls of one query, less their means, on the host and on devices.
class QueryControls {
 public:
  QueryControls(const Controls& controls, const MomentLayout& layout, std::size_t query)
      : QueryControls(controls.arrays(), layout, query) {}
  HEADLAB_HD QueryControls(const ControlArrays& controls, const MomentLayout& layout,
                           std::size_t query)
      : controls_(controls),
        layout_(layout),
        first_head_(query * static_cast<std::size_t>(layout.heads)),
        first_pair_(query * layout.pairs()) {}

  /// d_h from log W_h; -inf, the logarithm of no weight at all, gives 0.
  HEADLAB_HD double sum(std::size_t h, double log_weight_sum) const {
    return math::exp(log_weight_sum - controls_.log_scale[first_head_ + h]);
  }
  HEADLAB_HD HeadNumbers numbers(std::size_t h, double estimate, double sum) const {
    HeadNumbers of{sum, (estimate - controls_.estimate[first_head_ + h]) * sum};
    for (std::size_t j = 0; j < tilt_count; ++j) of.falls[j] = math::exp(-control_tilt(j) * sum);
    return of;
  }
  HEADLAB_HD ControlValues<estimate_controls> of_estimate(std::size_t h,
                                                          const HeadNumbers& of) const {
    ControlValues<estimate_controls> controls = {{of.sum, of.estimate}};
    for (std::size_t j = 0; j < tilt_count; ++j) {
      controls[2 + j] = of.falls[j];
      controls[2 + tilt_count + j] = of.estimate * of.falls[j];
    }
    subtract(controls_.means_of_estimates + (first_head_ + h) * estimate_controls, controls);
    return controls;
  }
  /// Of two heads, whose numbers these are.
  HEADLAB_HD ControlValues<noise_controls> of_noise(std::size_t h, std::size_t l, double noise,
                                                    const HeadNumbers& numbers_h,
                                                    const HeadNumbers& numbers_l) const {
    const bool swapped = like(h) > like(l);
    const HeadNumbers& of_h = swapped ? numbers_l : numbers_h;
    const HeadNumbers& of_l = swapped ? numbers_h : numbers_l;
    const bool one_head = like(h) == like(l);
    const double p = noise * of_h.sum * of_l.sum;
    ControlValues<noise_controls> controls = {
        {of_h.sum, of_l.sum, p, of_h.estimate * of_l.estimate}};
    for (std::size_t j = 0; j < tilt_count; ++j) {
      controls[4 + j] = of_h.falls[j];
      controls[4 + tilt_count + j] = of_l.falls[j];
      controls[4 + 2 * tilt_count + j] = p * of_h.falls[j] * (one_head ? 1 : of_l.falls[j]);
    }
    subtract(controls_.means_of_noise + pair(h, l) * noise_controls, controls);
    return controls;
  }

  /// mu'_h of a head with these numbers.
  HEADLAB_HD double controlled_estimate(std::size_t h, double estimate,
                                        const HeadNumbers& of) const {
    return controlled(estimate, controls_.of_estimates + (first_head_ + h) * estimate_controls,
                      of_estimate(h, of));
  }
  /// S'_hl
  HEADLAB_HD double controlled_noise(std::size_t h, std::size_t l, double noise,
                                     const HeadNumbers& of_h, const HeadNumbers& of_l) const {
    return controlled(noise, controls_.of_noise + pair(h, l) * noise_controls,
                      of_noise(h, l, noise, of_h, of_l));
  }

  /// The first head that is like h.
  HEADLAB_HD std::size_t like(std::size_t h) const {
    return controls_.alike == nullptr ? h : controls_.alike[first_head_ + h];
  }
  /// Where the pair stands that two heads share with all that are like them.
  HEADLAB_HD std::size_t pair(std::size_t h, std::size_t l) const {
    const std::size_t a = like(h), b = like(l);
    return first_pair_ + layout_.pair(a < b ? a : b, a < b ? b : a);
  }

 private:
  template <std::size_t Count>
  HEADLAB_HD static void subtract(const double* means, ControlValues<Count>& controls) {
    for (std::size_t c = 0; c < Count; ++c) controls[c] -= means[c];
  }

  ControlArrays controls_;
  const MomentLayout& layout_;
  std::size_t first_head_;
  std::size_t first_pair_;
};

/// Sets the statistics of a query that follow those without controls (ControlStatistics).
/// \param weight_sums log W_h [H]; becomes d_h
/// \param head_weights a_h [H]
void set_controlled(const Controls& controls, const MomentLayout& layout, std::size_t query,
                    std::span<double> weight_sums, std::span<const double> head_weights,
                    double* statistics);

}  // namespace headlab
