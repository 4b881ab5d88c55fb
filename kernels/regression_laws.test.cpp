// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/design_point.h"
#include "kernels/laws.h"
#include "kernels/philox.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

constexpr int m_dim = 5;

/// A point whose coordinates are floats, so that both precisions evaluate m at the same place.
std::vector<float> some_point(std::uint64_t i) {
  Table table;
  std::vector<float> x(static_cast<std::size_t>(point_buffer(m_dim)));
  draw_design_point(NormalDesign{.dim = m_dim}.sampler(table), table.rounded(), m_dim, 17,
                    Purpose::design, Purpose::design_choice, 0, i, x.data());
  return x;
}

/// Largest |m32 - m64| / bound over points, where m64 comes from `exact` and m32 from `law`.
/// bound(x) is the error that roundings to float32 can make, to first order.
template <class Law>
double worst_ratio(const Law& law, const Law& exact,
                   const std::function<double(const double*)>& bound) {
  Table table32;
  Table table64;
  const auto m32 = law.function(table32, m_dim);
  const auto m64 = exact.function(table64, m_dim);
  double worst = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::vector<float> x32 = some_point(i);
    const std::vector<double> x64(x32.begin(), x32.end());
    const auto got = static_cast<double>(m32(table32.rounded(), x32.data(), 1, 0));
    const double wanted = m64(table64.exact(), x64.data(), 1, 0);
    // NaN must not pass as agreement.
    const double ratio = std::abs(got - wanted) / bound(x64.data());
    worst = ratio <= worst ? worst : ratio;
  }
  return worst;
}

double dot_size(const std::vector<double>& u, const double* x) {
  double sum = 0;
  for (std::size_t j = 0; j < u.size(); ++j) sum += std::abs(u[j] * x[j]);
  return sum;
}

/// Of one cosine: the argument is off by d + 1 roundings of its terms (one for the table, d for the
/// sum), one for the phase's table and one for adding it; the cosine by 1 ulp, so two roundings;
/// the amplitude by its table and the sum over the terms.
double cosine_bound(double amplitude, const std::vector<double>& u, double phase, const double* x,
                    int terms) {
  const double argument = dot_size(u, x) + std::abs(phase);
  return std::abs(amplitude) * u32 * ((m_dim + 2) * argument + 2 + 1 + terms);
}

TEST(RegressionLaws, LinearAgreesBetweenPrecisions) {
  const LinearRegression law{.coefficients = {0.1, -2.3, 1.7, 0.01, 3}};
  LinearRegression wrong = law;
  wrong.coefficients[1] *= 1.00001;
  auto bound = [&](const double* x) { return (m_dim + 1) * u32 * dot_size(law.coefficients, x); };
  EXPECT_LE(worst_ratio(law, law, bound), 1);
  EXPECT_GT(worst_ratio(law, wrong, bound), 1);
}

TEST(RegressionLaws, CosinesAgreeBetweenPrecisions) {
  const CosinesRegression law{.amplitude = {1, -0.5},
                              .frequency = {{1, 2, 0.3, -4, 1}, {0.1, 0, 0, 9, 0.7}},
                              .phase = {0.1, -3}};
  CosinesRegression wrong = law;
  wrong.phase[0] += 1e-4;
  auto bound = [&](const double* x) {
    return cosine_bound(1, law.frequency[0], 0.1, x, 2) +
           cosine_bound(-0.5, law.frequency[1], -3, x, 2);
  };
  EXPECT_LE(worst_ratio(law, law, bound), 1);
  EXPECT_GT(worst_ratio(law, wrong, bound), 1);
}

TEST(RegressionLaws, RandomCosinesAgreeBetweenPrecisions) {
  const RandomCosinesRegression law{.terms = 8, .length_scale = 0.7, .smoothness = 1.5, .seed = 3};
  RandomCosinesRegression wrong = law;
  wrong.length_scale *= 1.0001;
  Table table;
  const CosineSum sum = law.function(table, m_dim);
  auto bound = [&](const double* x) {
    double total = 0;
    for (int j = 0; j < law.terms; ++j) {
      std::vector<double> u(table.exact() + sum.frequencies + j * m_dim,
                            table.exact() + sum.frequencies + (j + 1) * m_dim);
      for (double& value : u) value *= 2 * std::numbers::pi;
      total += cosine_bound(0.5, u, 2 * std::numbers::pi, x, law.terms);
    }
    return total;
  };
  EXPECT_LE(worst_ratio(law, law, bound), 1);
  EXPECT_GT(worst_ratio(law, wrong, bound), 1);
}

TEST(RegressionLaws, AdditiveAgreesBetweenPrecisions) {
  const AdditiveRegression law{.amplitude = {1, 0.5, 2, -1, 0.1},
                               .frequency = {1, 2, 3, 4, 5},
                               .phase = {0.1, 0.2, 0, -1, 2}};
  AdditiveRegression wrong = law;
  wrong.frequency[2] *= 1.0001;
  auto bound = [&](const double* x) {
    double sum = 0;
    for (std::size_t j = 0; j < m_dim; ++j) {
      sum += cosine_bound(law.amplitude[j], {law.frequency[j]}, law.phase[j], x + j, m_dim);
    }
    return sum;
  };
  EXPECT_LE(worst_ratio(law, law, bound), 1);
  EXPECT_GT(worst_ratio(law, wrong, bound), 1);
}

TEST(RegressionLaws, SingleIndexAgreesBetweenPrecisions) {
  const SingleIndexRegression law{.direction = {0.5, 0.5, -0.5, 0.5, 0.1}, .frequency = 4};
  SingleIndexRegression wrong = law;
  wrong.frequency = 4.0004;
  auto bound = [&](const double* x) { return cosine_bound(1, {2, 2, -2, 2, 0.4}, 0, x, 1); };
  EXPECT_LE(worst_ratio(law, law, bound), 1);
  EXPECT_GT(worst_ratio(law, wrong, bound), 1);
}

TEST(RegressionLaws, BumpsAgreeBetweenPrecisions) {
  const BumpsRegression law{.heights = {2, -1},
                            .centres = {{0.1, 0.2, 0, 0, 0}, {1, 1, 1.3, 0, -1}},
                            .widths = {1.5, 0.9}};
  BumpsRegression wrong = law;
  wrong.widths[0] *= 1.0001;
  // x - c is off by a rounding of c and its own; each square so by twice that and the sum by d; the
  // product with the rate by two roundings, the exponential by two, the height and sum by three.
  auto bound = [&](const double* x) {
    double sum = 0;
    for (std::size_t b = 0; b < 2; ++b) {
      const double rate = 1 / (2 * law.widths[b] * law.widths[b]);
      double r2 = 0;
      double off = 0;
      for (std::size_t i = 0; i < m_dim; ++i) {
        const double c = law.centres[b][i];
        r2 += (x[i] - c) * (x[i] - c);
        off += 2 * std::abs(x[i] - c) * (std::abs(c) + std::abs(x[i] - c));
      }
      sum += std::abs(law.heights[b]) * std::exp(-r2 * rate) * u32 *
             (rate * (off + (m_dim + 2) * r2) + 2 + 3);
    }
    return sum;
  };
  EXPECT_LE(worst_ratio(law, law, bound), 1);
  EXPECT_GT(worst_ratio(law, wrong, bound), 1);
}

TEST(RegressionLaws, StepAgreesBetweenPrecisionsOffItsEdge) {
  const StepRegression law{.direction = {1, -1, 0.3, 0, 2}, .threshold = 0.25, .height = 0.5};
  StepRegression wrong = law;
  wrong.threshold = 0.3;
  // Near the edge the sign of the rounded difference is not settled.
  auto bound = [&](const double* x) {
    double along = 0;
    for (std::size_t j = 0; j < m_dim; ++j) along += law.direction[j] * x[j];
    const double off = (m_dim + 1) * u32 * (dot_size(law.direction, x) + law.threshold);
    return std::abs(along - law.threshold) <= off ? 1.0 : u32;
  };
  EXPECT_LE(worst_ratio(law, law, bound), 1);
  EXPECT_GT(worst_ratio(law, wrong, bound), 1);
}

TEST(RegressionLaws, FileAndZeroReadTheirRow) {
  Table table;
  table.add(std::vector<double>{7, 7, 7});
  const auto m = FileRegression{.column = 0, .values = {0.1, 0.2, 0.3}}.function(table, 1);
  const double x = 0;
  const float x32 = 0;
  EXPECT_EQ(m(table.exact(), &x, 1, 1), 0.2);
  EXPECT_EQ(m(table.rounded(), &x32, 1, 2), 0.3f);
  EXPECT_EQ(ZeroRegression{}.function(table, 1)(table.exact(), &x, 1, 0), 0);
}

/// Mean over seeds of m(x) m(y), as a z from the known variance. For T terms and correlation
/// r(D) of the process, E A^2 B^2 = 1 + r(2 D)/2 for A, B = sqrt(2) cos(w.x + p), sqrt(2) cos(w.y +
/// p), so that Var m(x) m(y) = (1 + r(2D)/2)/T + (1 - 1/T)(1 + 2 r^2) - r^2.
double correlation_z(std::optional<double> smoothness,
                     const std::function<double(double)>& correlation) {
  constexpr int seeds = 20000;
  constexpr int terms = 4;
  constexpr double length_scale = 0.5;
  const double x[] = {0.3, -0.2};
  const double y[] = {0.6, 0.2};  // |x - y| = 0.5
  double sum = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Table table;
    const RandomCosinesRegression law{
        .terms = terms, .length_scale = length_scale, .smoothness = smoothness, .seed = seed};
    const CosineSum m = law.function(table, 2);
    sum += m(table.exact(), x, 1, 0) * m(table.exact(), y, 1, 0);
  }
  const double r = correlation(0.5 / length_scale);
  const double variance =
      (1 + correlation(1 / length_scale) / 2) / terms + (1 - 1.0 / terms) * (1 + 2 * r * r) - r * r;
  return std::abs(sum - seeds * r) / std::sqrt(seeds * variance);
}

TEST(RegressionLaws, RandomCosinesHaveTheirCovariance) {
  auto squared_exponential = [](double r) { return std::exp(-r * r / 2); };
  auto matern_half = [](double r) { return std::exp(-r); };
  auto matern_three_halves = [](double r) {
    return (1 + std::numbers::sqrt3 * r) * std::exp(-std::numbers::sqrt3 * r);
  };
  EXPECT_LE(correlation_z({}, squared_exponential), z_bound);
  EXPECT_LE(correlation_z(0.5, matern_half), z_bound);
  EXPECT_LE(correlation_z(1.5, matern_three_halves), z_bound);
  EXPECT_GT(correlation_z({}, matern_three_halves), z_bound);
  EXPECT_GT(correlation_z(0.5, matern_three_halves), z_bound);
}

}  // namespace
}  // namespace headlab
