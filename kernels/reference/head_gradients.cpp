// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "kernels/learning/units.h"
#include "kernels/reference/backend.h"

namespace headlab {
namespace {

class ReferenceGradients : public HeadGradients {
 public:
  explicit ReferenceGradients(const KernelLaw& kernel)
      : norm_coefficient_(learnable_norm_coefficient(kernel)),
        unit2_(length_scale(kernel) * length_scale(kernel)) {}

  void load(const FitPoints& points, std::size_t count) override {
    d_ = static_cast<std::size_t>(points.d);
    x_.assign(points.x.begin(), points.x.begin() + static_cast<std::ptrdiff_t>(count * d_));
    y_.assign(points.y.begin(), points.y.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void estimate(const HeadParameters& heads, const FitQueries& queries,
                std::span<double> f) override {
    heads_ = heads;
    queries_.assign(queries.x.begin(), queries.x.end());
    own_.assign(queries.own.begin(), queries.own.end());
    const auto count = static_cast<std::size_t>(heads.heads);
    for (std::size_t q = 0; q < own_.size(); ++q) {
      for (std::size_t h = 0; h < count; ++h) {
        const std::vector<double> w = weights(h, q);
        double sum = 0;
        for (std::size_t i = 0; i < y_.size(); ++i) sum += w[i] * y_[i];
        f[q * count + h] = sum;
      }
    }
    f_.assign(f.begin(), f.end());
  }

  void gradient(std::span<const double> s, HeadParameters& out) override {
    const auto count = static_cast<std::size_t>(heads_.heads);
    out = heads_;
    std::ranges::fill(out.keys, 0.0);
    std::ranges::fill(out.queries, 0.0);
    for (std::size_t q = 0; q < own_.size(); ++q) {
      for (std::size_t h = 0; h < count; ++h) {
        const std::vector<double> w = weights(h, q);
        for (std::size_t i = 0; i < y_.size(); ++i) {
          add(h, q, i, s[q * count + h] * w[i] * (y_[i] - f_[q * count + h]), out);
        }
      }
    }
  }

 private:
  const double* key_matrix(std::size_t h) const {
    return &heads_.keys[h * d_ * static_cast<std::size_t>(heads_.k)];
  }
  const double* query_matrix(std::size_t h) const {
    return heads_.queries.empty() ? key_matrix(h)
                                  : &heads_.queries[h * d_ * static_cast<std::size_t>(heads_.k)];
  }

  /// W^T x [k].
  std::vector<double> project(const double* w, const double* x) const {
    const auto k = static_cast<std::size_t>(heads_.k);
    std::vector<double> projected(k);
    for (std::size_t c = 0; c < d_; ++c) {
      for (std::size_t j = 0; j < k; ++j) projected[j] += w[c * k + j] * x[c];
    }
    return projected;
  }

  /// w_i [n] of head h at query q, 0 for the point that is left out.
  std::vector<double> weights(std::size_t h, std::size_t q) const {
    const std::vector<double> u = project(query_matrix(h), &queries_[q * d_]);
    std::vector<double> w(y_.size());
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < w.size(); ++i) {
      const std::vector<double> v = project(key_matrix(h), &x_[i * d_]);
      for (std::size_t j = 0; j < u.size(); ++j) {
        w[i] += (u[j] * v[j] + norm_coefficient_ * (u[j] * u[j] + v[j] * v[j]) / 2) / unit2_;
      }
      if (static_cast<std::int64_t>(i) == own_[q]) {
        w[i] = -std::numeric_limits<double>::infinity();
      }
      largest = std::max(largest, w[i]);
    }
    double sum = 0;
    for (double& weight : w) {
      weight = std::exp(weight - largest);
      sum += weight;
    }
    for (double& weight : w) weight /= sum;
    return w;
  }

  /// Adds c d(log K_i)/dW of head h at query q.
  void add(std::size_t h, std::size_t q, std::size_t i, double c, HeadParameters& out) const {
    const auto k = static_cast<std::size_t>(heads_.k);
    const double* x = &queries_[q * d_];
    const double* key = &x_[i * d_];
    double* of_keys = &out.keys[h * d_ * k];
    double* of_queries = out.queries.empty() ? of_keys : &out.queries[h * d_ * k];
    const std::vector<double> u = project(query_matrix(h), x);
    const std::vector<double> v = project(key_matrix(h), key);
    for (std::size_t a = 0; a < d_; ++a) {
      for (std::size_t j = 0; j < k; ++j) {
        of_keys[a * k + j] += c * key[a] * (u[j] + norm_coefficient_ * v[j]) / unit2_;
        of_queries[a * k + j] += c * x[a] * (v[j] + norm_coefficient_ * u[j]) / unit2_;
      }
    }
  }

  double norm_coefficient_;  ///< log K = (u.v + norm_coefficient (|u|^2 + |v|^2)/2) / unit2
  double unit2_;
  std::size_t d_ = 1;
  std::vector<double> x_;  ///< [n][d]
  std::vector<double> y_;  ///< [n]
  HeadParameters heads_;
  std::vector<double> queries_;  ///< [Q][d]
  std::vector<std::int64_t> own_;
  std::vector<double> f_;  ///< [Q][H]
};

}  // namespace

std::unique_ptr<HeadGradients> make_reference_gradients(const KernelLaw& kernel) {
  return std::make_unique<ReferenceGradients>(kernel);
}

}  // namespace headlab
