// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/controls/control_means.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <variant>
#include <vector>

#include "kernels/laws.h"
#include "kernels/plan.h"
#include "validation/theory/controls/point_means.h"
#include "validation/theory/model/model.h"

namespace headlab {
namespace {

constexpr std::size_t tilts = control_tilts.size();
constexpr double max_tilt = control_tilts.back();

/// (1 - fall)^count.
Bounded power(const Bounded& fall, double count) {
  if (count == 0) return {1, 0};
  const double exponent = count * std::log1p(-fall.value);
  const double value = std::exp(exponent);
  const double moved = count * fall.error / (1 - fall.value);
  return {value, value * (std::expm1(moved) + rounding_of_exp(exponent))};
}

/// What the means of one head at one query share.
struct HeadScale {
  double log_scale = 0;
  Bounded sum;                            ///< E d_h
  std::array<Bounded, tilts> falls = {};  ///< 1 - E exp(-t K_h / w_h) of one token
};

/// Puts the means of one query together.
class QueryMeans {
 public:
  QueryMeans(const Plan& plan, const PointMeans& points) : plan_(plan), points_(points) {
    for (std::size_t h = 0; h < heads(); ++h) scales_.push_back(scale(h));
  }

  void add_to(ControlMeans& means) const {
    const auto append = [](std::vector<double>& values, std::vector<double>& errors,
                           const auto& numbers) {
      for (const Bounded& one : numbers) {
        values.push_back(one.value);
        errors.push_back(one.error);
      }
    };
    for (std::size_t h = 0; h < heads(); ++h) {
      means.log_scale.push_back(scales_[h].log_scale);
      means.estimate.push_back(points_.estimate(h));
      append(means.of_estimates, means.estimate_errors, of_estimate(h));
    }
    for (std::size_t h = 0; h < heads(); ++h) {
      for (std::size_t l = h; l < heads(); ++l) {
        append(means.of_noise, means.noise_errors, of_noise(h, l));
      }
    }
  }

 private:
  std::size_t heads() const { return static_cast<std::size_t>(plan_.heads); }
  SeenTokens seen(std::size_t h) const {
    return plan_.mechanism.seen_by(static_cast<int>(h), plan_.n);
  }
  double tokens(std::size_t h) const { return static_cast<double>(seen(h).count()); }
  double log_factor(std::size_t h, std::size_t tilt) const {
    return std::log(control_tilts[tilt]) - scales_[h].log_scale;
  }

  HeadScale scale(std::size_t h) const {
    const double log_sum = points_.log_kernel(h) + std::log(tokens(h));
    const double highest = points_.max_log_factor(h) - std::log(max_tilt);
    // E exp(-s W) > exp(-1) at s = 1 / E W, by Jensen's inequality.
    double log_s = std::min(-log_sum, highest);
    constexpr double step = 0.4;
    constexpr int max_steps = 50;
    for (int i = 0; i < max_steps && log_s + step <= highest; ++i) {
      if (!(tokens(h) * points_.fall(h, log_s).value < 0.9)) break;
      log_s += step;
    }
    HeadScale of{.log_scale = -log_s, .sum = exact(std::exp(log_sum + log_s), h, h)};
    for (std::size_t j = 0; j < tilts; ++j) {
      of.falls[j] = points_.fall(h, log_s + std::log(control_tilts[j]));
    }
    return of;
  }

  /// A number of two heads in closed form.
  Bounded exact(double value, std::size_t h, std::size_t l) const {
    return {value, std::abs(value) * rounding_of_exp(std::abs(points_.log_kernel(h)) +
                                                     std::abs(points_.log_kernel(l)))};
  }

  /// E e_h(t_j) over `count` tokens.
  Bounded mean_fall(std::size_t h, std::size_t j, double count) const {
    return power(scales_[h].falls[j], count);
  }

  std::array<Bounded, estimate_controls> of_estimate(std::size_t h) const {
    // E g_h = 0 by the choice of r_h, which is rounded.
    const double spread = points_.product(h, h);
    const double size = std::abs(points_.estimate(h)) + (spread > 0 ? std::sqrt(spread) : 0);
    const Bounded estimate = scales_[h].sum * exact(size, h, h);
    std::array<Bounded, estimate_controls> means = {scales_[h].sum, Bounded{0, estimate.error}};
    for (std::size_t j = 0; j < tilts; ++j) {
      means[2 + j] = mean_fall(h, j, tokens(h));
      means[2 + tilts + j] = tokens(h) / control_tilts[j] * points_.away(h, log_factor(h, j)) *
                             mean_fall(h, j, tokens(h) - 1);
    }
    return means;
  }

  std::array<Bounded, noise_controls> of_noise(std::size_t h, std::size_t l) const {
    const double common = static_cast<double>(shared_tokens(seen(h), seen(l)));
    // E W_h E W_l / (w_h w_l), with one token in place of two.
    const Bounded sums = common / (tokens(h) * tokens(l)) * scales_[h].sum * scales_[l].sum;
    std::array<Bounded, noise_controls> means = {scales_[h].sum, scales_[l].sum,
                                                 sums * exact(points_.noise(h, l), h, l),
                                                 sums * exact(points_.product(h, l), h, l)};
    for (std::size_t j = 0; j < tilts; ++j) {
      const double t = control_tilts[j];
      means[4 + j] = mean_fall(h, j, tokens(h));
      means[4 + tilts + j] = mean_fall(l, j, tokens(l));
      Bounded& both = means[4 + 2 * tilts + j];
      both = {};
      if (common == 0) continue;
      const Bounded fall =
          h == l ? scales_[h].falls[j] : points_.fall(h, l, log_factor(h, j), log_factor(l, j));
      both = common / (t * t) * points_.noise(h, l, log_factor(h, j), log_factor(l, j)) *
             power(fall, common - 1) * mean_fall(h, j, tokens(h) - common) *
             mean_fall(l, j, tokens(l) - common);
    }
    return means;
  }

  const Plan& plan_;
  const PointMeans& points_;
  std::vector<HeadScale> scales_;  ///< [H]
};

ControlMeans means_of(const Plan& plan, PointMeans& points,
                      const std::function<bool(double)>& go_on) {
  ControlMeans means;
  for (int q = 0; q < plan.queries; ++q) {
    if (go_on && !go_on(q / static_cast<double>(plan.queries))) return {};
    points.set_query(static_cast<std::size_t>(q));
    QueryMeans(plan, points).add_to(means);
  }
  return means;
}

}  // namespace

ControlMeans control_means(const Condition& condition, const Plan& plan,
                           const std::function<bool(double)>& go_on) {
  if (std::holds_alternative<FileDesign::Sampler>(*plan.design)) {
    return means_of(plan, *row_means(plan), go_on);
  }
  const TheoryModel model =
      point_model(condition, plan, " - leave controls out, or use a design of law \"file\"");
  return means_of(plan, model.is_softmax() ? *softmax_means(model) : *gaussian_means(model), go_on);
}

}  // namespace headlab
