// SPDX-License-Identifier: Apache-2.0
/// \file Expectations over one design point X at one query, from which means of kernel sums follow.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "validation/theory/first_order/tilted_design.h"
#include "validation/theory/model/model.h"

namespace headlab {

struct Plan;

/// A number, and a bound of its error by rounding and by what a series or quadrature leaves out;
/// NaN where it is not known.
struct Bounded {
  double value = 0;
  double error = 0;

  /// Not known.
  static Bounded unknown() {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
};

/// Relative rounding of exp(exponent), of which the exponent and what stands before it were
/// computed in some dozens of operations.
inline double rounding_of_exp(double exponent) {
  constexpr double operations = 64;
  return operations * (1 + std::abs(exponent)) * std::numeric_limits<double>::epsilon();
}

inline Bounded operator*(const Bounded& a, const Bounded& b) {
  const double value = a.value * b.value;
  return {value, std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error +
                     std::abs(value) * std::numeric_limits<double>::epsilon()};
}
inline Bounded operator*(double a, const Bounded& b) {
  return Bounded{a, 0} * b;
}

/// With K_h the kernel value of X for head h, m its regression, s^2 its noise, D_h = E K_h and
/// r_h = E[K_h m]/D_h. Factors of kernel values are given as logarithms. NaN is an expectation that
/// is not known.
class PointMeans {
 public:
  virtual ~PointMeans() = default;

  /// Moves on to a query.
  virtual void set_query(std::size_t q) = 0;
  /// log D_h.
  virtual double log_kernel(std::size_t h) const = 0;
  /// r_h.
  virtual double estimate(std::size_t h) const = 0;
  /// Largest log s at which expectations of exp(-s K_h) are known.
  virtual double max_log_factor(std::size_t h) const = 0;
  /// 1 - E exp(-s K_h).
  virtual Bounded fall(std::size_t h, double log_s) const = 0;
  /// E[(m - r_h) s K_h exp(-s K_h)].
  virtual Bounded away(std::size_t h, double log_s) const = 0;
  /// E[K_h K_l s^2]/(D_h D_l).
  virtual double noise(std::size_t h, std::size_t l) const = 0;
  /// E[K_h K_l (m - r_h)(m - r_l)]/(D_h D_l).
  virtual double product(std::size_t h, std::size_t l) const = 0;
  /// 1 - E exp(-s K_h - t K_l), h != l.
  virtual Bounded fall(std::size_t h, std::size_t l, double log_s, double log_t) const = 0;
  /// E[s K_h t K_l s^2(X) exp(-s K_h - t K_l)]; of one head E[(s K_h)^2 s^2(X) exp(-s K_h)].
  virtual Bounded noise(std::size_t h, std::size_t l, double log_s, double log_t) const = 0;
};

/// Over the rows of the data file that the design of a plan draws from.
std::unique_ptr<PointMeans> row_means(const Plan& plan);

/// Over a normal or mixture design, for the gaussian kernel: exp(-s K_h) as a power series, because
/// E[K_h^a K_l^b] is known in closed form and K <= 1. `model` must outlive the result.
std::unique_ptr<PointMeans> gaussian_means(const TheoryModel& model);

/// The same for the softmax kernel, whose logarithms are normal: by quadrature over these.
std::unique_ptr<PointMeans> softmax_means(const TheoryModel& model);

/// Expectations without exponentials, by validation/theory/first_order/tilted_design.h.
class TiltedMeans : public PointMeans {
 public:
  explicit TiltedMeans(const TheoryModel& model);

  void set_query(std::size_t q) override { query_ = q; }
  double log_kernel(std::size_t h) const override { return head(h).log_mass; }
  double estimate(std::size_t h) const override { return head(h).regression.mean; }
  double noise(std::size_t h, std::size_t l) const override;
  double product(std::size_t h, std::size_t l) const override;

 protected:
  const TheoryModel& model() const { return model_; }
  std::size_t query() const { return query_; }

 private:
  const TiltedMoments& head(std::size_t h) const { return heads_[h][query_]; }
  const TiltedMoments& pair(std::size_t h, std::size_t l) const;
  /// E[K_h K_l]/(D_h D_l).
  double ratio(std::size_t h, std::size_t l) const;

  const TheoryModel& model_;
  std::size_t query_ = 0;
  std::vector<std::vector<TiltedMoments>> heads_;  ///< [H][Q]
  std::vector<std::vector<TiltedMoments>> pairs_;  ///< [H][H] of [Q], h <= l
};

}  // namespace headlab
