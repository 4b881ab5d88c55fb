// SPDX-License-Identifier: Apache-2.0
/// \file Small plans for the tests of the backends.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"

namespace headlab::test {

inline constexpr Estimator estimators[] = {Estimator::conditional, Estimator::plain};
inline constexpr MomentMode modes[] = {MomentMode::pairwise, MomentMode::aggregate};

inline std::string text_of(const Plan& plan) {
  return "n " + std::to_string(plan.n) + " d " + std::to_string(plan.d) + " H " +
         std::to_string(plan.heads) + " k " + std::to_string(plan.k) + " Q " +
         std::to_string(plan.queries) + " design " + std::to_string(plan.design->index()) +
         " regression " + std::to_string(plan.regression->index()) + " noise " +
         std::to_string(plan.noise->index()) + " kernel " + std::to_string(plan.kernel->index()) +
         (plan.estimator == Estimator::plain ? " plain" : " conditional") +
         (plan.moments == MomentMode::pairwise ? " pairwise" : " aggregate");
}

/// What a test varies.
struct Shape {
  std::uint64_t n = 100;
  int d = 6;
  int heads = 3;
  int k = 2;
  int queries = 5;
};

/// A plan with heads on random orthonormal frames, a sum of two cosines and normal noise.
inline Plan make_plan(const Shape& shape, const KernelLaw& kernel,
                      Estimator estimator = Estimator::conditional,
                      MomentMode moments = MomentMode::pairwise) {
  Plan plan;
  plan.n = shape.n;
  plan.d = shape.d;
  plan.heads = shape.heads;
  plan.k = shape.k;
  plan.queries = shape.queries;
  plan.seed = 11;
  plan.estimator = estimator;
  plan.moments = moments;
  plan.kernel = kernel;

  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const auto d = static_cast<std::size_t>(shape.d);
  const auto k = static_cast<std::size_t>(shape.k);
  for (int h = 0; h < shape.heads; ++h) {
    std::vector<std::vector<double>> columns;  // Gram-Schmidt
    while (columns.size() < k) {
      std::vector<double> column(d);
      for (double& value : column) value = normal(random);
      for (int pass = 0; pass < 2; ++pass) {
        for (const auto& other : columns) {
          double along = 0;
          for (std::size_t c = 0; c < d; ++c) along += other[c] * column[c];
          for (std::size_t c = 0; c < d; ++c) column[c] -= along * other[c];
        }
      }
      double norm2 = 0;
      for (const double value : column) norm2 += value * value;
      for (double& value : column) value /= std::sqrt(norm2);
      columns.push_back(column);
    }
    for (std::size_t c = 0; c < d; ++c) {
      for (std::size_t j = 0; j < k; ++j) plan.projections.push_back(columns[j][c]);
    }
    plan.head_weights.push_back(1.0 / (h + 1.5));
  }
  CosinesRegression m{.amplitude = {1.0, 0.5}, .frequency = {{}, {}}, .phase = {0.1, 0.7}};
  for (auto& row : m.frequency) {
    for (std::size_t c = 0; c < d; ++c) row.push_back(normal(random));
  }
  plan.design = NormalDesign{.dim = shape.d}.sampler(plan.table);
  plan.regression = m.function(plan.table, shape.d);
  plan.noise = NormalNoise{.sd = 0.5}.sampler(plan.table, shape.d);
  for (int q = 0; q < shape.queries; ++q) {
    for (std::size_t c = 0; c < d; ++c) plan.query_points.push_back(0.7 * normal(random));
    const double* x = &plan.query_points[static_cast<std::size_t>(q) * d];
    plan.truth.push_back(
        std::visit([&](const auto& function) { return function(plan.table.exact(), x, 1, 0); },
                   *plan.regression));
  }
  return plan;
}

/// A stack of layers on n normal tokens.
inline Plan stack_plan(const Stack& stack, std::uint64_t n, int d, std::uint64_t seed) {
  Plan plan;
  plan.n = n;
  plan.d = d;
  plan.seed = seed;
  plan.design = NormalDesign{.dim = d}.sampler(plan.table);
  plan.stack = std::make_shared<const Stack>(stack);
  return plan;
}

/// Noise whose scale varies over the points.
inline void vary_noise(Plan& plan, double sd = 0.4) {
  HeteroscedasticNoise law{.sd = sd, .slope = 1.5};
  for (int c = 0; c < plan.d; ++c) law.direction.push_back(c % 2 == 0 ? 0.3 : -0.1);
  plan.noise = law.sampler(plan.table, plan.d);
}

}  // namespace headlab::test
