// SPDX-License-Identifier: Apache-2.0
#include "kernels/laws.h"

#include <algorithm>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/design_point.h"
#include "kernels/philox.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

// Bounds of this file. Seeds are fixed, so a test passes or fails for good; the bounds say how
// likely a right law was to fail when the seed was chosen.
//   z of a mean over N draws, from the known variance of what is averaged: P(|z| > 4.5) = 7e-6.
//   sqrt(N) times the Kolmogorov distance: P(> 2.5) = 2 exp(-2 2.5^2) = 7e-6.
constexpr double kolmogorov_bound = 2.5;

struct Points {
  int d = 0;
  std::vector<double> x;           ///< [N][d]
  std::vector<std::uint32_t> row;  ///< [N]
  std::size_t count() const { return row.size(); }
  const double* operator[](std::size_t i) const { return &x[i * static_cast<std::size_t>(d)]; }
};

template <class Law>
Points draw(const Law& law, int count, std::uint64_t seed = 1) {
  law.check();
  Table table;
  const DesignSampler sampler = law.sampler(table);
  Points points{.d = law.dimension(), .x = {}, .row = {}};
  std::vector<float> x(static_cast<std::size_t>(point_buffer(points.d)));
  for (int i = 0; i < count; ++i) {
    points.row.push_back(draw_design_point(sampler, table.design(), points.d, seed, Purpose::design,
                                           Purpose::design_choice, 0, static_cast<std::uint64_t>(i),
                                           x.data()));
    points.x.insert(points.x.end(), x.begin(), x.begin() + points.d);
  }
  return points;
}

/// First moments, and for y = x - mean the second and fourth: what a law of X says about its draws.
struct KnownMoments {
  std::vector<double> mean;                    ///< [d]
  std::function<double(int, int)> covariance;  ///< E y_i y_j
  std::function<double(int, int)> fourth;      ///< E y_i^2 y_j^2
};

/// Largest |z| over the means of all x_i and all y_i y_j.
double worst_z(const Points& points, const KnownMoments& known) {
  const int d = points.d;
  const auto count = static_cast<double>(points.count());
  double worst = 0;
  for (int i = 0; i < d; ++i) {
    double first = 0;
    for (std::size_t p = 0; p < points.count(); ++p) first += points[p][i] - known.mean[i];
    worst = std::max(worst, std::abs(first) / std::sqrt(count * known.covariance(i, i)));
    for (int j = 0; j <= i; ++j) {
      const double s = known.covariance(i, j);
      double second = 0;
      for (std::size_t p = 0; p < points.count(); ++p) {
        second += (points[p][i] - known.mean[i]) * (points[p][j] - known.mean[j]) - s;
      }
      const double variance = known.fourth(i, j) - s * s;
      worst = std::max(worst, std::abs(second) / std::sqrt(count * variance));
    }
  }
  return worst;
}

/// The same law with variances 2 % larger: what a check must tell from the right one.
KnownMoments perturbed(KnownMoments known) {
  const auto covariance = known.covariance;
  known.covariance = [covariance](int i, int j) { return 1.02 * covariance(i, j); };
  return known;
}

using Matrix = std::vector<std::vector<double>>;

NormalDesign normal_design(int dim, std::vector<double> mean = {}, Matrix covariance = {},
                           std::optional<double> ar1 = {}) {
  return {.dim = dim, .mean = std::move(mean), .covariance = std::move(covariance), .ar1 = ar1};
}

Matrix identity(int d) {
  return ar1_covariance(d, 0.0);
}

/// Moments of sum_c p_c N(m_c, S_c). With D = m_c - mean, by Isserlis:
/// E y_i^2 y_j^2 = (D_i^2 + S_ii)(D_j^2 + S_jj) + 2 S_ij^2 + 4 D_i D_j S_ij in a component.
KnownMoments gaussian_mixture(std::vector<double> p, Matrix m, std::vector<Matrix> s) {
  const std::size_t d = m[0].size();
  std::vector<double> mean(d, 0.0);
  for (std::size_t c = 0; c < p.size(); ++c) {
    for (std::size_t i = 0; i < d; ++i) mean[i] += p[c] * m[c][i];
  }
  auto covariance = [=](int i, int j) {
    double sum = 0;
    for (std::size_t c = 0; c < p.size(); ++c) {
      sum += p[c] * ((m[c][i] - mean[i]) * (m[c][j] - mean[j]) + s[c][i][j]);
    }
    return sum;
  };
  auto fourth = [=](int i, int j) {
    double sum = 0;
    for (std::size_t c = 0; c < p.size(); ++c) {
      const double a = m[c][i] - mean[i];
      const double b = m[c][j] - mean[j];
      sum += p[c] * ((a * a + s[c][i][i]) * (b * b + s[c][j][j]) + 2 * s[c][i][j] * s[c][i][j] +
                     4 * a * b * s[c][i][j]);
    }
    return sum;
  };
  return {mean, covariance, fourth};
}

/// Coordinates that are independent with mean 0, E x^2 = second and E x^4 = fourth.
KnownMoments independent(int d, double second, double fourth) {
  return {std::vector<double>(d, 0.0), [=](int i, int j) { return i == j ? second : 0.0; },
          [=](int i, int j) { return i == j ? fourth : second * second; }};
}

/// Uniform on the unit sphere: E x_i^4 = 3/(d(d+2)), E x_i^2 x_j^2 = 1/(d(d+2)).
KnownMoments uniform_direction(int d) {
  const double pair = 1.0 / (d * (d + 2.0));
  return {std::vector<double>(d, 0.0), [=](int i, int j) { return i == j ? 1.0 / d : 0.0; },
          [=](int i, int j) { return i == j ? 3 * pair : pair; }};
}

/// sqrt(N) sup |F_N - F|.
double kolmogorov(std::vector<double> sample, const std::function<double(double)>& distribution) {
  std::ranges::sort(sample);
  const auto count = static_cast<double>(sample.size());
  double distance = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double f = distribution(sample[i]);
    const auto below = static_cast<double>(i);
    distance = std::max({distance, f - below / count, (below + 1) / count - f});
  }
  return std::sqrt(count) * distance;
}

// Design ------------------------------------------------------------------------------------------

// 2 % in a variance of normals is 0.02 sqrt(N/2) = 8.9 standard errors.
constexpr int design_draws = 400000;

TEST(DesignLaws, StandardNormalHasItsMoments) {
  const Points points = draw(normal_design(3), design_draws);
  const KnownMoments known = gaussian_mixture({1}, {{0, 0, 0}}, {identity(3)});
  EXPECT_LE(worst_z(points, known), z_bound);
  EXPECT_GT(worst_z(points, perturbed(known)), z_bound);
}

TEST(DesignLaws, NormalHasTheGivenMeanAndCovariance) {
  const Matrix s = {{2.0, 0.6, -0.3}, {0.6, 1.0, 0.2}, {-0.3, 0.2, 0.5}};
  const Points points = draw(normal_design(3, {1, -2, 0.5}, s), design_draws);
  const KnownMoments known = gaussian_mixture({1}, {{1, -2, 0.5}}, {s});
  EXPECT_LE(worst_z(points, known), z_bound);
  EXPECT_GT(worst_z(points, perturbed(known)), z_bound);
  EXPECT_GT(worst_z(points, gaussian_mixture({1}, {{1, -2, 0.52}}, {s})), z_bound);
}

TEST(DesignLaws, NormalAr1HasPowersOfItsCorrelation) {
  const Points points = draw(normal_design(3, {}, {}, -0.7), design_draws);
  const Matrix s = {{1, -0.7, 0.49}, {-0.7, 1, -0.7}, {0.49, -0.7, 1}};
  EXPECT_LE(worst_z(points, gaussian_mixture({1}, {{0, 0, 0}}, {s})), z_bound);
  EXPECT_GT(worst_z(points, gaussian_mixture({1}, {{0, 0, 0}}, {ar1_covariance(3, -0.68)})),
            z_bound);
}

TEST(DesignLaws, MixtureHasItsMoments) {
  const MixtureDesign law{.weights = {0.25, 0.0, 0.75},
                          .means = {{3, 0}, {100, 100}, {-1, 1}},
                          .covariances = {{{1, 0.5}, {0.5, 2}}, identity(2), identity(2)}};
  const Points points = draw(law, design_draws);
  EXPECT_LE(worst_z(points, gaussian_mixture(law.weights, law.means, law.covariances)), z_bound);
  EXPECT_GT(worst_z(points, perturbed(gaussian_mixture(law.weights, law.means, law.covariances))),
            z_bound);
  EXPECT_GT(worst_z(points, gaussian_mixture({0.26, 0.0, 0.74}, law.means, law.covariances)),
            z_bound);
}

TEST(DesignLaws, UniformHasItsMomentsAndDistribution) {
  const Points points = draw(UniformDesign{.dim = 3}, design_draws);
  EXPECT_LE(worst_z(points, independent(3, 1.0 / 3, 1.0 / 5)), z_bound);
  EXPECT_GT(worst_z(points, perturbed(independent(3, 1.0 / 3, 1.0 / 5))), z_bound);
  std::vector<double> last;
  for (std::size_t i = 0; i < points.count(); ++i) last.push_back(points[i][2]);
  EXPECT_LE(kolmogorov(last, [](double x) { return (x + 1) / 2; }), kolmogorov_bound);
  EXPECT_GT(kolmogorov(last, [](double x) { return (x / 1.01 + 1) / 2; }), kolmogorov_bound);
}

TEST(DesignLaws, SphereHasUnitNormAndUniformDirection) {
  for (const int d : {1, 3, 6}) {
    const Points points = draw(SphereDesign{.dim = d}, design_draws / 2);
    // The sum of squares is off by d roundings, its root by half of that and one, the quotient and
    // the product by one each.
    const double bound = (0.5 * d + 3) * u32 * 1.001;
    double worst = 0;
    for (std::size_t i = 0; i < points.count(); ++i) {
      double norm2 = 0;
      for (int j = 0; j < d; ++j) norm2 += points[i][j] * points[i][j];
      worst = std::max(worst, std::abs(std::sqrt(norm2) - 1));
    }
    EXPECT_LE(worst, bound) << d;
    KnownMoments known = uniform_direction(d);
    if (d == 1) known.fourth = [](int, int) { return 2.0; };  // x^2 = 1: any positive variance
    EXPECT_LE(worst_z(points, known), z_bound) << d;
    EXPECT_GT(worst_z(points, perturbed(known)), z_bound) << d;
  }
}

/// Distribution of |x|^2 for elliptical t: |x|^2/d ~ F(d, df), so |x|^2/(df + |x|^2) is
/// Beta(a = d/2, b = df/2), in closed form where a = 2 or b = 2.
std::function<double(double)> squared_norm_of_t(int d, double df) {
  return [=](double norm2) {
    const double z = norm2 / (df + norm2);
    const double complement = df / (df + norm2);
    const double a = 0.5 * d;
    const double b = 0.5 * df;
    if (d == 4) return 1 - std::pow(complement, b) * (1 + b * z);
    EXPECT_EQ(df, 4) << "no closed form";
    return std::pow(z, a) * (1 + a * complement);
  };
}

std::vector<double> squared_norms(const Points& points) {
  std::vector<double> norms;
  for (std::size_t i = 0; i < points.count(); ++i) {
    double norm2 = 0;
    for (int j = 0; j < points.d; ++j) norm2 += points[i][j] * points[i][j];
    norms.push_back(norm2);
  }
  return norms;
}

Points directions(Points points) {
  const std::vector<double> norms = squared_norms(points);
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    points.x[i] /= std::sqrt(norms[i / static_cast<std::size_t>(points.d)]);
  }
  return points;
}

TEST(DesignLaws, StudentIsElliptical) {
  const struct {
    int d;
    double df;
  } cases[] = {{4, 3}, {4, 0.5}, {4, 40}, {3, 4}, {5, 4}, {1, 4}, {2, 4}};
  for (const auto& [d, df] : cases) {
    const Points points = draw(StudentDesign{.dim = d, .df = df}, design_draws / 4);
    EXPECT_LE(kolmogorov(squared_norms(points), squared_norm_of_t(d, df)), kolmogorov_bound)
        << d << " " << df;
    if (d == 1) continue;
    EXPECT_LE(worst_z(directions(points), uniform_direction(d)), z_bound) << d;
  }
  const Points points = draw(StudentDesign{.dim = 4, .df = 3}, design_draws / 2);
  EXPECT_GT(kolmogorov(squared_norms(points), squared_norm_of_t(4, 3.3)), kolmogorov_bound);
  EXPECT_GT(worst_z(directions(points), perturbed(uniform_direction(4))), z_bound);
}

TEST(DesignLaws, StudentPairsAreDependentAsTheyShould) {
  // Independent t coordinates have the right marginals, yet |x|^2/(df + |x|^2) is no Beta.
  const Points points = draw(StudentDesign{.dim = 1, .df = 3}, design_draws);
  std::vector<double> norms;
  for (std::size_t i = 0; i < points.count(); i += 4) {
    double norm2 = 0;
    for (std::size_t j = 0; j < 4; ++j) norm2 += points[i + j][0] * points[i + j][0];
    norms.push_back(norm2);
  }
  EXPECT_GT(kolmogorov(norms, squared_norm_of_t(4, 3)), kolmogorov_bound);
}

TEST(DesignLaws, StudentStaysInsideFloat) {
  const Points points = draw(StudentDesign{.dim = 7, .df = 0.01}, 20000);
  for (const double x : points.x) ASSERT_LE(std::abs(x), 1e15 * (1 + u32));
}

TEST(DesignLaws, FileRowsAreDrawnAlike) {
  FileDesign law;
  law.rows = {{1, 2}, {3, 4}, {5, 6}, {0.1, 8}, {9, 10}};
  const Points points = draw(law, 100000);
  std::vector<double> counts(law.rows.size(), 0.0);
  for (std::size_t i = 0; i < points.count(); ++i) {
    ASSERT_LT(points.row[i], law.rows.size());
    const auto row = law.rows[points.row[i]];
    ASSERT_EQ(points[i][0], row[0]);
    ASSERT_EQ(points[i][1], row[1]);
    ++counts[points.row[i]];
  }
  const auto size = static_cast<double>(law.rows.size());
  const auto total = static_cast<double>(points.count());
  auto z = [&](double count, double p) {
    return std::abs(count - total * p) / std::sqrt(total * p * (1 - p));
  };
  for (const double count : counts) {
    EXPECT_LE(z(count, 1 / size), z_bound);
    EXPECT_GT(z(count, 1.05 / size), z_bound);
  }
}

TEST(DesignPoint, TakesEachCoordinateFromItsOwnWord) {
  constexpr int d = 7;
  const std::uint64_t seed = 12345;
  const std::uint64_t replicate = 99;
  const std::uint64_t point = 6;
  Table table;
  float normal[8];
  float uniform[8];
  draw_design_point(normal_design(d).sampler(table), table.rounded(), d, seed, Purpose::design,
                    Purpose::design_choice, replicate, point, normal);
  draw_design_point(UniformDesign{.dim = d}.sampler(table), table.rounded(), d, seed,
                    Purpose::queries, Purpose::queries_choice, replicate, point, uniform);
  for (int j = 0; j < d; ++j) {
    const std::uint64_t quad = point * 2 + static_cast<unsigned>(j / 4);
    const Words of_normal = philox(seed, subsequence(Purpose::design, replicate), quad);
    const NormalPair z = normal_pair(of_normal.w[j % 4 / 2 * 2], of_normal.w[j % 4 / 2 * 2 + 1]);
    EXPECT_EQ(normal[j], j % 2 == 0 ? z.first : z.second) << j;
    const Words of_uniform = philox(seed, subsequence(Purpose::queries, replicate), quad);
    EXPECT_EQ(uniform[j], uniform_symmetric(of_uniform.w[j % 4])) << j;
  }
}

TEST(DesignPoint, ChoosesByTheFirstWordOfItsOwnQuad) {
  const MixtureDesign law{.weights = {0.5, 0.5}, .means = {{-1000}, {1000}}, .covariances = {}};
  Table table;
  const auto sampler = law.sampler(table);
  for (std::uint64_t point = 0; point < 20; ++point) {
    float x[4];
    draw_design_point(sampler, table.rounded(), 1, 3, Purpose::design, Purpose::design_choice, 5,
                      point, x);
    const std::uint32_t word = philox(3, subsequence(Purpose::design_choice, 5), point).w[0];
    EXPECT_EQ(x[0] > 0, word >= 0x80000000u) << point;
  }
}

TEST(DesignLaws, RefuseWhatDoesNotFit) {
  auto message = [](const auto& law) -> std::string {
    try {
      law.check();
    } catch (const ParameterError& error) {
      return error.key() + ": " + error.what();
    }
    return "";
  };
  EXPECT_EQ(message(normal_design(2, {1})), "mean: has 1 elements, needs 2");
  EXPECT_EQ(message(normal_design(2, {}, {{1, 2}, {2, 1}})),
            "covariance: is not positive definite");
  EXPECT_EQ(message(normal_design(2, {}, {{1, 0.1}, {0.2, 1}})), "covariance: is not symmetric");
  EXPECT_EQ(message(normal_design(2, {}, {{1, 0}})), "covariance: must be 2 x 2");
  EXPECT_EQ(message(MixtureDesign{.weights = {0.5, 0.4}, .means = {{0}, {1}}, .covariances = {}}),
            "weights: sum to 0.900000, must sum to 1");
  EXPECT_EQ(
      message(MixtureDesign{.weights = {0.5, 0.5}, .means = {{0}, {1, 2}}, .covariances = {}}),
      "means: rows differ in length");
  EXPECT_EQ(message(FileDesign{}), "path: file has no rows");
  EXPECT_EQ(message(normal_design(2, {1, 2})), "");
}

// Noise -------------------------------------------------------------------------------------------

constexpr int noise_draws = 1000000;

template <class Law>
std::vector<double> unit_noise(const Law& law, int count) {
  Table table;
  const auto sampler = law.sampler(table, 1);
  std::vector<double> units;
  for (int i = 0; i < count; ++i) {
    units.push_back(static_cast<double>(
        sampler.unit(philox(2, subsequence(Purpose::noise, 4), static_cast<std::uint64_t>(i)))));
  }
  return units;
}

/// Largest |z| of mean and variance for draws of the given variance whose square has the variance
/// (kurtosis - 1) variance^2.
double noise_z(const std::vector<double>& e, double variance, double kurtosis) {
  const auto count = static_cast<double>(e.size());
  double first = 0;
  double second = 0;
  for (const double value : e) {
    first += value;
    second += value * value - variance;
  }
  return std::max(std::abs(first) / std::sqrt(count * variance),
                  std::abs(second) / (variance * std::sqrt(count * (kurtosis - 1))));
}

double normal_distribution(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

double laplace_distribution(double x) {
  const double tail = 0.5 * std::exp(-std::numbers::sqrt2 * std::abs(x));
  return x < 0 ? tail : 1 - tail;
}

/// Student t of variance 1 for df = 3 or even df: with tan(w) = t/sqrt(df),
/// F = 1/2 + (w + sin w cos w)/pi, or 1/2 + (sin w / 2) sum_j (1 3 .. 2j-1)/(2 4 .. 2j) cos^2j w.
double student_distribution(double x, double df) {
  const double w = std::atan(x * std::sqrt(df / (df - 2)) / std::sqrt(df));
  if (df == 3) return 0.5 + (w + std::sin(w) * std::cos(w)) / std::numbers::pi;
  double sum = 0;
  double term = 1;
  for (int j = 1; 2 * j <= df; ++j) {
    sum += term;
    term *= (2.0 * j - 1) / (2.0 * j) * std::cos(w) * std::cos(w);
  }
  return 0.5 + 0.5 * std::sin(w) * sum;
}

std::vector<double> first_part(const std::vector<double>& sample) {
  return {sample.begin(), sample.begin() + 200000};
}

TEST(NoiseLaws, NormalIsStandardNormal) {
  const auto e = unit_noise(NormalNoise{.sd = 3}, noise_draws);
  EXPECT_LE(noise_z(e, 1, 3), z_bound);
  EXPECT_GT(noise_z(e, 1.02, 3), z_bound);
  EXPECT_LE(kolmogorov(first_part(e), normal_distribution), kolmogorov_bound);
  EXPECT_GT(kolmogorov(first_part(e), laplace_distribution), kolmogorov_bound);
}

TEST(NoiseLaws, HeteroscedasticUnitIsStandardNormal) {
  const auto e = unit_noise(HeteroscedasticNoise{.sd = 3, .slope = 1, .direction = {1}}, 300000);
  EXPECT_LE(noise_z(e, 1, 3), z_bound);
  EXPECT_GT(noise_z(e, 1.02, 3), z_bound);
  EXPECT_LE(kolmogorov(first_part(e), normal_distribution), kolmogorov_bound);
}

TEST(NoiseLaws, LaplaceHasUnitVariance) {
  const auto e = unit_noise(LaplaceNoise{.sd = 3}, noise_draws);
  EXPECT_LE(noise_z(e, 1, 6), z_bound);
  EXPECT_GT(noise_z(e, 1.02, 6), z_bound);
  EXPECT_LE(kolmogorov(first_part(e), laplace_distribution), kolmogorov_bound);
  EXPECT_GT(kolmogorov(first_part(e), normal_distribution), kolmogorov_bound);
}

TEST(NoiseLaws, StudentHasUnitVariance) {
  // Kurtosis 3 + 6/(df - 4).
  const auto e = unit_noise(StudentNoise{.df = 10, .sd = 3}, noise_draws);
  EXPECT_LE(noise_z(e, 1, 4), z_bound);
  EXPECT_GT(noise_z(e, 1.02, 4), z_bound);
  EXPECT_LE(kolmogorov(first_part(e), [](double x) { return student_distribution(x, 10); }),
            kolmogorov_bound);
  const auto heavy = unit_noise(StudentNoise{.df = 3, .sd = 1}, 200000);
  EXPECT_LE(kolmogorov(heavy, [](double x) { return student_distribution(x, 3); }),
            kolmogorov_bound);
  EXPECT_GT(kolmogorov(heavy, [](double x) { return student_distribution(x, 4); }),
            kolmogorov_bound);
}

TEST(NoiseLaws, ScaleIsTheStandardDeviation) {
  Table table;
  const double x[] = {1, 2, -1};
  const float x32[] = {1, 2, -1};
  EXPECT_EQ(NormalNoise{.sd = 0.3}.sampler(table, 3).scale(table.exact(), x, 1), 0.3);
  EXPECT_EQ(LaplaceNoise{.sd = 0.3}.sampler(table, 3).scale(table.rounded(), x32, 1), 0.3f);
  EXPECT_EQ((StudentNoise{.df = 5, .sd = 2}.sampler(table, 3).scale(table.exact(), x, 1)), 2.0);
  // direction.x = 0.5 - 4 - 0.25 = -3.75
  const HeteroscedasticNoise law{.sd = 0.5, .slope = 2, .direction = {0.5, -2, 0.25}};
  const auto sampler = law.sampler(table, 3);
  EXPECT_EQ(sampler.scale(table.exact(), x, 1), 0.5 * (1 + 2 * 3.75));
  EXPECT_EQ(sampler.scale(table.rounded(), x32, 1), 4.25f);
  const double strided[] = {1, 9, 2, 9, -1};
  EXPECT_EQ(sampler.scale(table.exact(), strided, 2), 4.25);
  EXPECT_THROW(law.check(2), ParameterError);
}

}  // namespace
}  // namespace headlab
