// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "kernels/kernel_laws.h"
#include "validation/theory/controls/point_means.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Of a standard normal variable, on either side of where an integrand may have its mass.
constexpr double reach_of_tilt = 8.5;
/// Of the trapezoid rule in a standard normal variable, and in the logarithm of a kernel value.
constexpr double widest_step = 0.25, widest_log_step = 0.35;
/// Of an integrand, for one mean.
constexpr double max_evaluations = 40000;

class SoftmaxMeans : public TiltedMeans {
 public:
  explicit SoftmaxMeans(const TheoryModel& model) : TiltedMeans(model) {}

  using TiltedMeans::noise;
  double max_log_factor(std::size_t) const override {
    return std::numeric_limits<double>::infinity();
  }

  void set_query(std::size_t q) override {
    TiltedMeans::set_query(q);
    const double t = std::get<SoftmaxKernel>(*model().kernel).temperature;
    directions_.clear();
    for (std::size_t h = 0; h < model().projections.size(); ++h) {
      directions_.push_back(model().projections[h] *
                            (model().query_projection(h).transpose() * model().queries[q]) / t);
    }
  }

  Bounded fall(std::size_t h, double log_s) const override {
    return over_one(h, nullptr,
                    [&](double u, double) { return -std::expm1(-std::exp(u + log_s)); });
  }
  Bounded away(std::size_t h, double log_s) const override {
    if (model().zero_regression) return {};
    return over_one(h, model().regression.get(), [&](double u, double m) {
      return (m - estimate(h)) * std::exp(u + log_s - std::exp(u + log_s));
    });
  }
  Bounded fall(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    return over_two(h, l, nullptr, [&](double u, double v, double) {
      return -std::expm1(-std::exp(u + log_s) - std::exp(v + log_t));
    });
  }
  Bounded noise(std::size_t h, std::size_t l, double log_s, double log_t) const override {
    const IntegrableFunction* variance =
        model().constant_noise ? nullptr : model().noise_variance.get();
    const double constant = model().constant_noise ? model().noise_sd * model().noise_sd : 1;
    if (h == l) {
      return constant * over_one(h, variance, [&](double u, double s2) {
               return s2 * std::exp(2 * (u + log_s) - std::exp(u + log_s));
             });
    }
    return constant * over_two(h, l, variance, [&](double u, double v, double s2) {
             const double a = u + log_s, b = v + log_t;
             return s2 * std::exp(a + b - std::exp(a) - std::exp(b));
           });
  }

 private:
  /// Points on one side of 0 of the trapezoid rule below.
  static double points(double shift, double slope) {
    return std::ceil((reach_of_tilt + shift) / step(slope));
  }
  static double step(double slope) {
    return std::min(widest_step, widest_log_step / std::max(slope, 1e-300));
  }
  static Bounded bounded(double value) {
    return {value, std::abs(value) * std::numeric_limits<double>::epsilon()};
  }
  static Bounded bounded(const Bounded& number) { return number; }

  /// Trapezoid rule for E f(z), z ~ N(0, 1), of which f moves the mass by at most `shift`; `slope`
  /// is the largest that a logarithm of a kernel value has in z. The rule converges so fast for
  /// these functions, which are analytic, that half the step squares the relative error: what
  /// every other point gives bounds what all leave out.
  template <class Function>
  static Bounded over_normal(double shift, double slope, const Function& f) {
    const double h = step(slope);
    const auto end = static_cast<long>(points(shift, slope));
    double all = 0, even = 0, size = 0, error = 0;
    for (long i = -end; i <= end; ++i) {
      const double z = static_cast<double>(i) * h;
      const double weight = std::exp(-z * z / 2);
      const Bounded term = bounded(f(z));
      all += weight * term.value;
      if (i % 2 == 0) even += 2 * weight * term.value;
      size += weight * std::abs(term.value);
      error += weight * term.error;
    }
    const double factor = h / std::sqrt(2 * std::numbers::pi);
    constexpr double safety = 10;
    const double coarse = std::abs(all - even);
    const double left_out = size > 0 ? safety * coarse * coarse / size : 0;
    const double rounding = rounding_of_exp(0) * size;
    return {all * factor, (error + left_out + rounding) * factor};
  }

  /// Mean of a function of X given standard normal coordinates of it; 1 where there is none.
  /// \param slope [d][coordinates]
  static std::function<double(const VectorXd&)> given(const IntegrableFunction* function,
                                                      const GaussianLaw& law,
                                                      const MatrixXd& slope) {
    if (function == nullptr) return [](const VectorXd&) { return 1.0; };
    const std::shared_ptr<const ConditionalMoments> moments =
        function->along({law.mean, law.covariance - slope * slope.transpose()}, slope);
    return [moments](const VectorXd& z) { return (*moments)(z).mean; };
  }

  static void add(const Bounded& term, Bounded& sum) {
    sum.value += term.value;
    sum.error += term.error;
  }

  /// E f(log K_h, E[function | log K_h]); not known where it would take long.
  template <class Function>
  Bounded over_one(std::size_t h, const IntegrableFunction* function, const Function& f) const {
    const GaussianMixture& design = model().design;
    Bounded sum;
    double evaluations = 0;
    for (std::size_t c = 0; c < design.components.size(); ++c) {
      const GaussianLaw& law = design.components[c];
      const double mean = directions_[h].dot(law.mean);
      const VectorXd seen = law.covariance * directions_[h];
      const double sd = std::sqrt(std::max(directions_[h].dot(seen), 0.0));
      evaluations += 2 * points(2 * sd, sd);
      if (!(evaluations < max_evaluations)) return Bounded::unknown();
      const auto mean_given =
          given(function, law, sd > 0 ? VectorXd(seen / sd) : VectorXd(0 * seen));
      VectorXd at(1);
      add(design.weights[c] * over_normal(2 * sd, sd,
                                          [&](double z) {
                                            at(0) = z;
                                            return f(mean + sd * z, mean_given(at));
                                          }),
          sum);
    }
    return sum;
  }

  /// E f(log K_h, log K_l, E[function | log K_h, log K_l]); not known where it would take long.
  template <class Function>
  Bounded over_two(std::size_t h, std::size_t l, const IntegrableFunction* function,
                   const Function& f) const {
    const GaussianMixture& design = model().design;
    Bounded sum;
    double evaluations = 0;
    for (std::size_t c = 0; c < design.components.size(); ++c) {
      const GaussianLaw& law = design.components[c];
      const VectorXd seen_h = law.covariance * directions_[h];
      const VectorXd seen_l = law.covariance * directions_[l];
      const double mean_h = directions_[h].dot(law.mean), mean_l = directions_[l].dot(law.mean);
      const double sd_h = std::sqrt(std::max(directions_[h].dot(seen_h), 0.0));
      // Of l along h, and what is left of it.
      const double along = sd_h > 0 ? directions_[l].dot(seen_h) / sd_h : 0;
      const double rest = std::sqrt(std::max(directions_[l].dot(seen_l) - along * along, 0.0));
      MatrixXd slope = MatrixXd::Zero(seen_h.size(), 2);
      if (sd_h > 0) slope.col(0) = seen_h / sd_h;
      if (rest > 0) slope.col(1) = (seen_l - along * slope.col(0)) / rest;
      const auto mean_given = given(function, law, slope);
      VectorXd at(2);
      const double shift = sd_h + std::abs(along), steepest = std::max(sd_h, std::abs(along));
      evaluations += 4 * points(shift, steepest) * points(rest, rest);
      if (!(evaluations < max_evaluations)) return Bounded::unknown();
      add(design.weights[c] * over_normal(shift, steepest,
                                          [&](double z) {
                                            return over_normal(rest, rest, [&](double y) {
                                              at << z, y;
                                              return f(mean_h + sd_h * z,
                                                       mean_l + along * z + rest * y,
                                                       mean_given(at));
                                            });
                                          }),
          sum);
    }
    return sum;
  }

  std::vector<VectorXd> directions_;  ///< [H], of log K_h in X
};

}  // namespace

std::unique_ptr<PointMeans> softmax_means(const TheoryModel& model) {
  return std::make_unique<SoftmaxMeans>(model);
}

}  // namespace headlab
