// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "validation/theory/controls/tilted_means.h"

namespace headlab {
namespace {

/// Largest s: the terms of exp(-s K) are e^s times the sum at most, and lose that much precision.
constexpr double max_factor = 8;
/// Terms below this share of the first are left out.
constexpr double smallest_term = 1e-14;

class GaussianMeans : public TiltedMeans {
 public:
  explicit GaussianMeans(const TheoryModel& model) : TiltedMeans(model) {}

  using TiltedMeans::noise;
  double max_log_factor(std::size_t) const override { return std::log(max_factor); }

  double fall(std::size_t h, double log_s) const override {
    return -series(log_s, [&](int a, double log_factor) {
      return a == 0 ? 0.0 : std::exp(log_factor + moment(h, a, h, 0).log_mass);
    });
  }
  double away(std::size_t h, double log_s) const override {
    if (model().zero_regression) return 0;
    return series(log_s, [&](int a, double log_factor) {
      const Moment& tilted = moment(h, a + 1, h, 0);
      return std::exp(log_factor + log_s + tilted.log_mass) * (tilted.mean - estimate(h));
    });
  }
  double fall(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    return -double_series(log_s, log_t, [&](int a, int b, double log_factor) {
      return a + b == 0 ? 0.0 : std::exp(log_factor + moment(h, a, l, b).log_mass);
    });
  }
  double noise(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    if (h == l) {
      return series(log_s, [&](int a, double log_factor) {
        return weighted(moment(h, a + 2, h, 0), log_factor + 2 * log_s);
      });
    }
    return double_series(log_s, log_t, [&](int a, int b, double log_factor) {
      return weighted(moment(h, a + 1, l, b + 1), log_factor + log_s + log_t);
    });
  }

 private:
  /// E[K_h^a K_l^b], and the means of m (of one head alone) and s^2 under that weight.
  struct Moment {
    double log_mass;
    double mean;
    double noise;
  };

  static double weighted(const Moment& moment, double log_factor) {
    return std::exp(log_factor + moment.log_mass) * moment.noise;
  }

  /// sum_a (-1)^a term(a, log(s^a / a!)), the terms of order s^a / a!.
  template <class Term>
  static double series(double log_s, const Term& term) {
    double sum = 0;
    for (int a = 0;; ++a) {
      const double log_factor = a * log_s - std::lgamma(a + 1.0);
      if (a > 0 && log_s < std::log(a) && log_factor < std::log(smallest_term)) return sum;
      sum += (a % 2 == 0 ? 1 : -1) * term(a, log_factor);
    }
  }
  template <class Term>
  static double double_series(double log_s, double log_t, const Term& term) {
    return series(log_s, [&](int a, double log_a) {
      double sum = 0;
      for (int b = 0;; ++b) {
        const double log_b = b * log_t - std::lgamma(b + 1.0);
        if (b > 0 && log_t < std::log(b) && log_a + log_b < std::log(smallest_term)) return sum;
        sum += (b % 2 == 0 ? 1 : -1) * term(a, b, log_a + log_b);
      }
    });
  }

  const Moment& moment(std::size_t h, int a, std::size_t l, int b) const {
    std::vector<Moment>& at = moments_[{h, a, l, b}];
    if (at.empty()) {
      const bool one = b == 0;
      // A head of power 0 is the other alone.
      const TiltedDesign tilted = a == 0 ? TiltedDesign(model(), l, b, l, 0, false)
                                         : TiltedDesign(model(), h, a, l, b, one && h == l);
      for (const Eigen::VectorXd& x : model().queries) {
        const TiltedMoments moments = tilted.at(x);
        at.push_back({moments.log_mass, moments.regression.mean, moments.noise_variance});
      }
    }
    return at[query()];
  }

  mutable std::map<std::tuple<std::size_t, int, std::size_t, int>, std::vector<Moment>> moments_;
};

}  // namespace

std::unique_ptr<PointMeans> gaussian_means(const TheoryModel& model) {
  return std::make_unique<GaussianMeans>(model);
}

}  // namespace headlab
