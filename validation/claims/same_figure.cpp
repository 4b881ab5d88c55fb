// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/same_figure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace headlab {
namespace {

constexpr int largest_dimension = 64;  ///< of products that are compared
constexpr double rounding = 1e-12;

/// W V' of two projections [d][k].
std::vector<double> product(const double* w, const double* v, std::size_t d, std::size_t k) {
  std::vector<double> out(d * d, 0.0);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t c = 0; c < k; ++c) out[i * d + j] += w[i * k + c] * v[j * k + c];
    }
  }
  return out;
}

bool is_same_head(const Plan& a, int h, const Plan& b, int l) {
  if (a.d != b.d || a.k != b.k || a.mechanism.seen_by(h, a.n) != b.mechanism.seen_by(l, b.n) ||
      a.mechanism.keep.of_head(h) != b.mechanism.keep.of_head(l)) {
    return false;
  }
  const auto d = static_cast<std::size_t>(a.d), k = static_cast<std::size_t>(a.k);
  const double* keys_a = &a.projections[static_cast<std::size_t>(h) * d * k];
  const double* keys_b = &b.projections[static_cast<std::size_t>(l) * d * k];
  const double* queries_a = a.query_projection(h);
  const double* queries_b = b.query_projection(l);
  if (std::equal(keys_a, keys_a + d * k, keys_b) &&
      std::equal(queries_a, queries_a + d * k, queries_b)) {
    return true;
  }
  if (a.d > largest_dimension) return false;
  const auto equal = [](const std::vector<double>& one, const std::vector<double>& other) {
    return std::ranges::equal(one, other, [](double x, double y) {
      return std::abs(x - y) <= rounding * std::max({1.0, std::abs(x), std::abs(y)});
    });
  };
  return equal(product(keys_a, keys_a, d, k), product(keys_b, keys_b, d, k)) &&
         equal(product(queries_a, keys_a, d, k), product(queries_b, keys_b, d, k));
}

/// The heads of a plan that differ, each by the first that is like it, and what the ensemble gives
/// to all of them.
struct DistinctHeads {
  std::vector<int> heads;
  std::vector<double> weights;

  explicit DistinctHeads(const Plan& plan) {
    for (int h = 0; h < plan.heads; ++h) {
      const double weight = plan.head_weights[static_cast<std::size_t>(h)];
      std::size_t i = 0;
      while (i < heads.size() && !is_same_head(plan, heads[i], plan, h)) ++i;
      if (i == heads.size()) {
        heads.push_back(h);
        weights.push_back(0);
      }
      weights[i] += weight;
    }
  }
};

bool is_same_ensemble(const Plan& a, const Plan& b) {
  const DistinctHeads of_a(a), of_b(b);
  if (of_a.heads.size() != of_b.heads.size()) return false;
  for (std::size_t i = 0; i < of_a.heads.size(); ++i) {
    std::size_t j = 0;
    while (j < of_b.heads.size() && !is_same_head(a, of_a.heads[i], b, of_b.heads[j])) ++j;
    if (j == of_b.heads.size() || std::abs(of_a.weights[i] - of_b.weights[j]) > rounding) {
      return false;
    }
  }
  return true;
}

/// Whether draws of heads or queries leave the heads of a plan what they are: frames of the whole
/// space.
bool draws_change_heads(const Plan& plan) {
  return plan.redraws && !(plan.k == plan.d && plan.query_projections.empty());
}

/// Whether what is not of single heads is the same.
bool is_same_world(const Plan& a, const Plan& b) {
  const Mechanism &left = a.mechanism, &right = b.mechanism;
  return !a.stack && !b.stack && !a.learning && !b.learning && !draws_change_heads(a) &&
         !draws_change_heads(b) && a.redraws == b.redraws && shares_draws(a, b) &&
         a.kernel.index() == b.kernel.index() && length_scale(a.kernel) == length_scale(b.kernel) &&
         a.query_points == b.query_points && left.merge == right.merge &&
         left.levels == right.levels && !left.keep.shared && !right.keep.shared;
}

}  // namespace

bool is_same_figure(const Plan& a, const FigureName& of_a, const Plan& b, const FigureName& of_b) {
  if (of_a.name != of_b.name || of_a.layer != of_b.layer ||
      of_a.index.size() != of_b.index.size()) {
    return false;
  }
  const bool same_plan = &a == &b;
  if (same_plan && of_a == of_b) return true;
  if (a.stack || (same_plan ? a.learning || draws_change_heads(a) : !is_same_world(a, b)))
    return false;
  if (!of_a.index.empty() && of_a.index[0] != of_b.index[0]) return false;
  if (of_a.index.size() > 1) {
    const auto same = [&](std::size_t i, std::size_t j) {
      return is_same_head(a, static_cast<int>(of_a.index[i]), b, static_cast<int>(of_b.index[j]));
    };
    return of_a.index.size() == 2 ? same(1, 1)
                                  : (same(1, 1) && same(2, 2)) || (same(1, 2) && same(2, 1));
  }
  const bool of_ensemble =
      of_a.name.find("mse") != std::string::npos || of_a.name.starts_with("bias_squared");
  if (of_ensemble) return is_same_ensemble(a, b);
  const DistinctHeads one(a), other(b);
  return one.heads.size() == 1 && other.heads.size() == 1 && is_same_head(a, 0, b, 0);
}

}  // namespace headlab
