// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "validation/theory/controls/point_means.h"

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

  Bounded fall(std::size_t h, double log_s) const override {
    return -1.0 * series(log_s, [&](int a, double log_factor) {
      return a == 0 ? Bounded() : weighted(moment(h, a, h, 0), log_factor, 1);
    });
  }
  Bounded away(std::size_t h, double log_s) const override {
    if (model().zero_regression) return {};
    return series(log_s, [&](int a, double log_factor) {
      const Moment& tilted = moment(h, a + 1, h, 0);
      Bounded term = weighted(tilted, log_factor + log_s, tilted.mean - estimate(h));
      // The difference may cancel.
      const double size = std::abs(tilted.mean) + std::abs(estimate(h));
      term.error = std::max(term.error, weighted(tilted, log_factor + log_s, size).error);
      return term;
    });
  }
  Bounded fall(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    return -1.0 * double_series(log_s, log_t, [&](int a, int b, double log_factor) {
      return a + b == 0 ? Bounded() : weighted(moment(h, a, l, b), log_factor, 1);
    });
  }
  Bounded noise(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    if (h == l) {
      return series(log_s, [&](int a, double log_factor) {
        const Moment& tilted = moment(h, a + 2, h, 0);
        return weighted(tilted, log_factor + 2 * log_s, tilted.noise);
      });
    }
    return double_series(log_s, log_t, [&](int a, int b, double log_factor) {
      const Moment& tilted = moment(h, a + 1, l, b + 1);
      return weighted(tilted, log_factor + log_s + log_t, tilted.noise);
    });
  }

 private:
  /// E[K_h^a K_l^b], and the means of m (of one head alone) and s^2 under that weight.
  struct Moment {
    double log_mass;
    double mean;
    double noise;
  };

  static Bounded weighted(const Moment& moment, double log_factor, double factor) {
    const double value = std::exp(log_factor + moment.log_mass) * factor;
    return {value,
            std::abs(value) * rounding_of_exp(std::abs(log_factor) + std::abs(moment.log_mass))};
  }

  /// sum_a (-1)^a term(a, log(s^a / a!)), the terms of order s^a / a!. Errors are those of the
  /// terms, and of the last one, beyond which they fall fast.
  template <class Term>
  static Bounded series(double log_s, const Term& term) {
    Bounded sum;
    for (int a = 0;; ++a) {
      const double log_factor = a * log_s - std::lgamma(a + 1.0);
      const Bounded next = term(a, log_factor);
      if (a > 0 && log_s < std::log(a) && log_factor < std::log(smallest_term)) {
        sum.error += std::abs(next.value) + next.error;
        return sum;
      }
      sum.value += (a % 2 == 0 ? 1 : -1) * next.value;
      sum.error += next.error;
    }
  }
  template <class Term>
  static Bounded double_series(double log_s, double log_t, const Term& term) {
    return series(log_s, [&](int a, double log_a) {
      Bounded sum;
      for (int b = 0;; ++b) {
        const double log_b = b * log_t - std::lgamma(b + 1.0);
        const Bounded next = term(a, b, log_a + log_b);
        if (b > 0 && log_t < std::log(b) && log_a + log_b < std::log(smallest_term)) {
          sum.error += std::abs(next.value) + next.error;
          return sum;
        }
        sum.value += (b % 2 == 0 ? 1 : -1) * next.value;
        sum.error += next.error;
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
