// SPDX-License-Identifier: Apache-2.0
/// \file Small fits, and the comparison of a backend with the reference on them; for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernel_laws.h"
#include "kernels/learning/head_gradients.h"
#include "kernels/reference/backend.h"
#include "kernels/testing/agreement.h"

namespace headlab::test {

/// A training set, heads and queries, the first of which are points of the set.
struct FitCase {
  KernelLaw kernel;
  FitPoints points;
  HeadParameters heads;
  std::vector<float> queries;     ///< [Q][d]
  std::vector<std::int64_t> own;  ///< [Q]
  std::vector<double> s;          ///< [Q][H]

  FitQueries asked() const { return {queries, own}; }
  std::size_t n() const { return points.y.size(); }
};

struct FitShape {
  std::size_t n = 60;
  int d = 5;
  int heads = 3;
  int k = 2;
  std::size_t queries = 7;
  bool separate = false;  ///< W_Q and W_K
};

inline FitCase make_fit_case(const FitShape& shape, const KernelLaw& kernel) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  FitCase c{.kernel = kernel,
            .points = {.d = shape.d, .x = {}, .y = {}},
            .heads = {.heads = shape.heads,
                      .d = shape.d,
                      .k = shape.k,
                      .keys = {},
                      .queries = {},
                      .weights = {}},
            .queries = {},
            .own = {},
            .s = {}};
  const auto d = static_cast<std::size_t>(shape.d);
  for (std::size_t i = 0; i < shape.n * d; ++i) {
    c.points.x.push_back(static_cast<float>(normal(random)));
  }
  for (std::size_t i = 0; i < shape.n; ++i) {
    c.points.y.push_back(3 + std::cos(static_cast<double>(c.points.x[i * d])) + normal(random));
  }
  const double size = 1 / std::sqrt(static_cast<double>(shape.d));
  const auto numbers = static_cast<std::size_t>(shape.heads * shape.d * shape.k);
  for (std::size_t i = 0; i < numbers; ++i) {
    c.heads.keys.push_back(size * normal(random));
    if (shape.separate) c.heads.queries.push_back(size * normal(random));
  }
  for (int h = 0; h < shape.heads; ++h) c.heads.weights.push_back(1.0 / (h + 1));
  for (std::size_t q = 0; q < shape.queries; ++q) {
    // Two in three are points of the set, which are left out.
    const bool inside = q % 3 != 2;
    const std::size_t own = q * 37 % shape.n;
    c.own.push_back(inside ? static_cast<std::int64_t>(own) : -1);
    for (std::size_t a = 0; a < d; ++a) {
      c.queries.push_back(inside ? c.points.x[own * d + a] : static_cast<float>(normal(random)));
    }
    for (int h = 0; h < shape.heads; ++h) c.s.push_back(normal(random));
  }
  return c;
}

/// ConditionEstimates [Q][H] and gradients of a fit case.
struct FitAnswer {
  std::vector<double> f;
  HeadParameters gradient;
};
inline FitAnswer answer(const FitCase& c, HeadGradients& gradients) {
  FitAnswer out{.f = std::vector<double>(c.s.size(), std::nan("")), .gradient = {}};
  gradients.load(c.points, c.n());
  gradients.estimate(c.heads, c.asked(), out.f);
  gradients.gradient(c.s, out.gradient);
  return out;
}

/// What the reference answers, and how far from it float32 may be: every term of a sum may be off
/// by eps32 times a constant and the size of its exponent.
struct FitReference {
  FitAnswer exact;
  std::vector<double> f_allowed;                      ///< [Q][H]
  std::vector<double> keys_allowed, queries_allowed;  ///< [H][d][k], as the gradients
};

inline FitReference reference_answer(const FitCase& c, const Rounding& rounding) {
  FitReference out{.exact = answer(c, *make_reference_gradients(c.kernel))};
  const auto d = static_cast<std::size_t>(c.points.d);
  const auto k = static_cast<std::size_t>(c.heads.k);
  const auto heads = static_cast<std::size_t>(c.heads.heads);
  const double share = norm_coefficient_of(c.kernel).value();
  const double unit2 = length_scale(c.kernel) * length_scale(c.kernel);
  const bool separate = !c.heads.queries.empty();
  double largest_y = 0;
  for (const double y : c.points.y) largest_y = std::max(largest_y, std::abs(y));
  out.f_allowed.assign(c.s.size(), 0.0);
  out.keys_allowed.assign(c.heads.keys.size(), 0.0);
  out.queries_allowed.assign(c.heads.queries.size(), 0.0);
  // W^T x, and sum |W_cj x_c|.
  auto project = [&](const double* w, const float* x, std::vector<double>& to, bool sizes) {
    to.assign(k, 0.0);
    for (std::size_t a = 0; a < d; ++a) {
      for (std::size_t j = 0; j < k; ++j) {
        const double term = w[a * k + j] * static_cast<double>(x[a]);
        to[j] += sizes ? std::abs(term) : term;
      }
    }
  };
  std::vector<double> u, v, size_u, size_v, w(c.n()), off(c.n());
  for (std::size_t h = 0; h < heads; ++h) {
    const double* of_keys = &c.heads.keys[h * d * k];
    const double* of_queries = separate ? &c.heads.queries[h * d * k] : of_keys;
    double* keys_allowed = &out.keys_allowed[h * d * k];
    double* queries_allowed = separate ? &out.queries_allowed[h * d * k] : keys_allowed;
    for (std::size_t q = 0; q < c.own.size(); ++q) {
      const float* x = &c.queries[q * d];
      project(of_queries, x, u, false);
      project(of_queries, x, size_u, true);
      double sum = 0;
      for (std::size_t i = 0; i < c.n(); ++i) {
        project(of_keys, &c.points.x[i * d], v, false);
        project(of_keys, &c.points.x[i * d], size_v, true);
        double log_weight = 0;
        double size = 0;
        for (std::size_t j = 0; j < k; ++j) {
          log_weight += (u[j] * v[j] + share * (u[j] * u[j] + v[j] * v[j]) / 2) / unit2;
          size += (size_u[j] + size_v[j]) * (size_u[j] + size_v[j]) / unit2;
        }
        off[i] = eps32 * (rounding.constant + rounding.of_exponent * size);
        w[i] = static_cast<std::int64_t>(i) == c.own[q] ? 0 : std::exp(log_weight);
        sum += w[i];
      }
      const double f = out.exact.f[q * heads + h];
      double& f_allowed = out.f_allowed[q * heads + h];
      for (std::size_t i = 0; i < c.n(); ++i) f_allowed += off[i] * w[i] / sum * 2 * largest_y;
      for (std::size_t i = 0; i < c.n(); ++i) {
        const float* key = &c.points.x[i * d];
        project(of_keys, key, size_v, true);
        const double factor = off[i] * std::abs(c.s[q * heads + h]) * w[i] / sum *
                              (std::abs(c.points.y[i] - f) + largest_y) / unit2;
        for (std::size_t a = 0; a < d; ++a) {
          for (std::size_t j = 0; j < k; ++j) {
            keys_allowed[a * k + j] += factor * std::abs(static_cast<double>(key[a])) *
                                       (size_u[j] + std::abs(share) * size_v[j]);
            queries_allowed[a * k + j] += factor * std::abs(static_cast<double>(x[a])) *
                                          (size_v[j] + std::abs(share) * size_u[j]);
          }
        }
      }
    }
  }
  return out;
}

/// True where a float32 backend's answer lies as near to the reference as rounding explains. NaN is
/// never near. `largest` becomes at least the largest error in units of what is allowed.
inline ::testing::AssertionResult close_to(const FitReference& reference, const FitAnswer& given,
                                           double* largest = nullptr) {
  auto check = [&](const char* what, const std::vector<double>& numbers,
                   const std::vector<double>& exact, const std::vector<double>& allowed) {
    if (numbers.size() != exact.size()) return ::testing::AssertionFailure() << what << ": shape";
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double error = std::abs(numbers[i] - exact[i]);
      if (!(error <= allowed[i])) {
        return ::testing::AssertionFailure()
               << what << ' ' << i << ": " << numbers[i] << ", reference " << exact[i]
               << ", allowed " << allowed[i];
      }
      if (largest != nullptr && error > 0) *largest = std::max(*largest, error / allowed[i]);
    }
    return ::testing::AssertionSuccess();
  };
  const HeadParameters& exact = reference.exact.gradient;
  auto result = check("estimate", given.f, reference.exact.f, reference.f_allowed);
  if (result)
    result = check("gradient of keys", given.gradient.keys, exact.keys, reference.keys_allowed);
  if (result) {
    result = check("gradient of queries", given.gradient.queries, exact.queries,
                   reference.queries_allowed);
  }
  return result;
}

/// The shapes that a backend is compared at.
inline std::vector<FitShape> fit_shapes() {
  return {{.n = 2, .d = 1, .heads = 1, .k = 1, .queries = 1},
          {.n = 31, .d = 6, .heads = 3, .k = 2, .queries = 7},
          {.n = 33, .d = 6, .heads = 2, .k = 5, .queries = 8},
          {.n = 600, .d = 17, .heads = 1, .k = 16, .queries = 9},
          {.n = 700, .d = 40, .heads = 2, .k = 33, .queries = 10},
          {.n = 5000, .d = 8, .heads = 2, .k = 3, .queries = 75}};
}

/// Kernels for a shape, wide enough that a window holds several keys.
inline std::vector<KernelLaw> learnable_kernels(const FitShape& shape) {
  const double width = shape.k > 10 ? 4 : 0.7;
  return {GaussianKernel{.bandwidth = width}, SoftmaxKernel{.temperature = width}};
}

/// Y = cos(2 direction.x) + noise, x ~ N(0, I_3), direction = (0.8, 0.6, 0).
inline FitPoints single_index_points(std::size_t n, double sd = 0.1) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  FitPoints points{.d = 3, .x = {}, .y = {}};
  for (std::size_t i = 0; i < n; ++i) {
    for (int c = 0; c < 3; ++c) points.x.push_back(static_cast<float>(normal(random)));
    const double along =
        0.8 * static_cast<double>(points.x[3 * i]) + 0.6 * static_cast<double>(points.x[3 * i + 1]);
    points.y.push_back(std::cos(2 * along) + sd * normal(random));
  }
  return points;
}

/// One head of dimension 1 that looks along the first axis.
inline Learning one_head() {
  Learning learning;
  learning.start = {.heads = 1, .d = 3, .k = 1, .keys = {1, 0, 0}, .queries = {}, .weights = {1}};
  return learning;
}

}  // namespace headlab::test
