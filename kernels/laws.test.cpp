// SPDX-License-Identifier: Apache-2.0
#include "kernels/laws.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/laplace.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <gtest/gtest.h>

#include "kernels/design_point.h"
#include "kernels/philox.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

// Bounds of this file. Seeds are fixed, so a test passes or fails for good; the bounds say how
// likely a right law was to fail when the seed was chosen.
//   z of a mean over N draws, from the known variance of what is averaged: P(|z| > 4.5) = 7e-6.
//   sqrt(N) times the Kolmogorov distance: P(> 2.5) = 7e-6.
constexpr double kolmogorov_bound = 2.5;

using Eigen::MatrixXd;
using Eigen::VectorXd;
/// Of distributions: no sums in long double, which would take most of the time here.
using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Points {
  Rows x;                          ///< [N][d]
  std::vector<std::uint32_t> row;  ///< [N]
};

template <class Law>
Points draw(const Law& law, int count) {
  law.check();
  Table table;
  const DesignSampler sampler = law.sampler(table);
  const int d = law.dimension();
  Points points{.x = Rows(count, d), .row = {}};
  std::vector<float> x(static_cast<std::size_t>(point_buffer(d)));
  for (int i = 0; i < count; ++i) {
    points.row.push_back(draw_design_point(sampler, table.design(), d, 1, Purpose::design,
                                           Purpose::design_choice, 0, static_cast<std::uint64_t>(i),
                                           x.data()));
    points.x.row(i) = Eigen::Map<const Eigen::RowVectorXf>(x.data(), d).cast<double>();
  }
  return points;
}

/// First moments, and for y = x - mean the second and fourth: what a law of X says about its draws.
struct KnownMoments {
  VectorXd mean;
  MatrixXd covariance;  ///< E y_i y_j
  MatrixXd fourth;      ///< E y_i^2 y_j^2
};

/// Largest |z| over the means of all x_i and all y_i y_j.
double worst_z(const Rows& x, const KnownMoments& known) {
  const auto n = static_cast<double>(x.rows());
  const Rows y = x.rowwise() - known.mean.transpose();
  const VectorXd first = y.colwise().sum();
  const MatrixXd second = y.transpose() * y - n * known.covariance;
  const MatrixXd variance = known.fourth - known.covariance.cwiseAbs2();
  const VectorXd of_first = first.array().abs() / (n * known.covariance.diagonal()).array().sqrt();
  const MatrixXd of_second = second.array().abs() / (n * variance).array().sqrt();
  return std::max(of_first.maxCoeff<Eigen::PropagateNaN>(),
                  of_second.maxCoeff<Eigen::PropagateNaN>());
}

/// The draws have the moments known, and neither variances 2 % larger nor any of the wrong ones.
void expect_moments(const Rows& x, const KnownMoments& known,
                    const std::vector<KnownMoments>& wrong = {}) {
  EXPECT_LE(worst_z(x, known), z_bound);
  EXPECT_GT(worst_z(x, {known.mean, 1.02 * known.covariance, known.fourth}), z_bound);
  for (const KnownMoments& other : wrong) EXPECT_GT(worst_z(x, other), z_bound);
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
KnownMoments gaussian_mixture(const std::vector<double>& p, const Matrix& m,
                              const std::vector<Matrix>& s) {
  const auto d = static_cast<Eigen::Index>(m[0].size());
  const auto vector = [&](const std::vector<double>& of) {
    return Eigen::Map<const VectorXd>(of.data(), d);
  };
  KnownMoments all{VectorXd::Zero(d), MatrixXd::Zero(d, d), MatrixXd::Zero(d, d)};
  for (std::size_t c = 0; c < p.size(); ++c) all.mean += p[c] * vector(m[c]);
  for (std::size_t c = 0; c < p.size(); ++c) {
    MatrixXd own(d, d);
    for (Eigen::Index i = 0; i < d; ++i) own.col(i) = vector(s[c][static_cast<std::size_t>(i)]);
    const VectorXd off = vector(m[c]) - all.mean;
    const MatrixXd product = off * off.transpose();
    const VectorXd square = off.cwiseAbs2() + own.diagonal();
    all.covariance += p[c] * (product + own);
    all.fourth +=
        p[c] * (square * square.transpose() + 2 * own.cwiseAbs2() + 4 * product.cwiseProduct(own));
  }
  return all;
}

/// Mean 0, E x_i^2 = second, E x_i^4 = fourth, E x_i x_j = 0 and E x_i^2 x_j^2 = pair.
KnownMoments symmetric(int d, double second, double fourth, double pair) {
  KnownMoments known{VectorXd::Zero(d), second * MatrixXd::Identity(d, d),
                     MatrixXd::Constant(d, d, pair)};
  known.fourth.diagonal().setConstant(fourth);
  return known;
}

/// Uniform on the unit sphere: E x_i^4 = 3/(d(d+2)), E x_i^2 x_j^2 = 1/(d(d+2)).
KnownMoments uniform_direction(int d) {
  const double pair = 1.0 / (d * (d + 2.0));
  return symmetric(d, 1.0 / d, 3 * pair, pair);
}

// Design ------------------------------------------------------------------------------------------

// 2 % in a variance of normals is 0.02 sqrt(N/2) = 8.9 standard errors.
constexpr int design_draws = 400000;

TEST(DesignLaws, NormalHasTheGivenMeanAndCovariance) {
  expect_moments(draw(normal_design(3), design_draws).x,
                 gaussian_mixture({1}, {{0, 0, 0}}, {identity(3)}));
  const Matrix s = {{2.0, 0.6, -0.3}, {0.6, 1.0, 0.2}, {-0.3, 0.2, 0.5}};
  expect_moments(draw(normal_design(3, {1, -2, 0.5}, s), design_draws).x,
                 gaussian_mixture({1}, {{1, -2, 0.5}}, {s}),
                 {gaussian_mixture({1}, {{1, -2, 0.52}}, {s})});
}

TEST(DesignLaws, NormalAr1HasPowersOfItsCorrelation) {
  const Matrix s = {{1, -0.7, 0.49}, {-0.7, 1, -0.7}, {0.49, -0.7, 1}};
  expect_moments(draw(normal_design(3, {}, {}, -0.7), design_draws).x,
                 gaussian_mixture({1}, {{0, 0, 0}}, {s}),
                 {gaussian_mixture({1}, {{0, 0, 0}}, {ar1_covariance(3, -0.68)})});
}

TEST(DesignLaws, MixtureHasItsMoments) {
  const MixtureDesign law{.weights = {0.25, 0.0, 0.75},
                          .means = {{3, 0}, {100, 100}, {-1, 1}},
                          .covariances = {{{1, 0.5}, {0.5, 2}}, identity(2), identity(2)}};
  expect_moments(draw(law, design_draws).x,
                 gaussian_mixture(law.weights, law.means, law.covariances),
                 {gaussian_mixture({0.26, 0.0, 0.74}, law.means, law.covariances)});
}

std::vector<double> numbers(const VectorXd& x) {
  return {x.begin(), x.end()};
}

TEST(DesignLaws, UniformHasItsMomentsAndDistribution) {
  const Rows x = draw(UniformDesign{.dim = 3}, design_draws).x;
  expect_moments(x, symmetric(3, 1.0 / 3, 1.0 / 5, 1.0 / 9));
  const std::vector<double> last = numbers(x.col(2));
  EXPECT_LE(kolmogorov(last, [](double u) { return (u + 1) / 2; }), kolmogorov_bound);
  EXPECT_GT(kolmogorov(last, [](double u) { return (u / 1.01 + 1) / 2; }), kolmogorov_bound);
}

TEST(DesignLaws, SphereHasUnitNormAndUniformDirection) {
  for (const int d : {1, 3, 6}) {
    SCOPED_TRACE(d);
    const Rows x = draw(SphereDesign{.dim = d}, design_draws / 2).x;
    // The sum of squares is off by d roundings, its root by half of that and one, the quotient and
    // the product by one each.
    const double bound = (0.5 * d + 3) * u32 * 1.001;
    EXPECT_LE((x.rowwise().norm().array() - 1).abs().maxCoeff<Eigen::PropagateNaN>(), bound);
    KnownMoments known = uniform_direction(d);
    if (d == 1) known.fourth.setConstant(2);  // x^2 = 1: any positive variance
    expect_moments(x, known);
  }
}

/// Distribution of |x|^2 for elliptical t: |x|^2/d ~ F(d, df).
auto squared_norm_of_t(int d, double df) {
  return [=](double norm2) {
    return cdf(boost::math::fisher_f_distribution<double, InDouble>(d, df), norm2 / d);
  };
}

TEST(DesignLaws, StudentIsElliptical) {
  const struct {
    int d;
    double df;
  } cases[] = {{4, 3}, {4, 0.5}, {4, 40}, {3, 4}, {5, 4}, {1, 4}, {2, 4}};
  for (const auto& [d, df] : cases) {
    SCOPED_TRACE(testing::Message() << "d " << d << ", df " << df);
    const Rows x = draw(StudentDesign{.dim = d, .df = df}, design_draws / 4).x;
    EXPECT_LE(kolmogorov(numbers(x.rowwise().squaredNorm()), squared_norm_of_t(d, df)),
              kolmogorov_bound);
    if (d == 1) continue;
    EXPECT_LE(worst_z(x.rowwise().normalized(), uniform_direction(d)), z_bound);
  }
  const Rows x = draw(StudentDesign{.dim = 4, .df = 3}, design_draws / 2).x;
  EXPECT_GT(kolmogorov(numbers(x.rowwise().squaredNorm()), squared_norm_of_t(4, 3.3)),
            kolmogorov_bound);
  expect_moments(x.rowwise().normalized(), uniform_direction(4));
}

TEST(DesignLaws, StudentPairsAreDependentAsTheyShould) {
  // Independent t coordinates have the right marginals, yet |x|^2/4 is not F(4, df).
  const Rows x = draw(StudentDesign{.dim = 1, .df = 3}, design_draws).x;
  const Eigen::Map<const Rows> fours(x.data(), design_draws / 4, 4);
  EXPECT_GT(kolmogorov(numbers(fours.rowwise().squaredNorm()), squared_norm_of_t(4, 3)),
            kolmogorov_bound);
}

TEST(DesignLaws, StudentStaysInsideFloat) {
  const Rows x = draw(StudentDesign{.dim = 7, .df = 0.01}, 20000).x;
  EXPECT_LE(x.cwiseAbs().maxCoeff<Eigen::PropagateNaN>(), 1e15 * (1 + u32));
}

TEST(DesignLaws, FileRowsAreDrawnAlike) {
  FileDesign law;
  law.rows = {{1, 2}, {3, 4}, {5, 6}, {0.1, 8}, {9, 10}};
  const Points points = draw(law, 100000);
  std::vector<double> counts(law.rows.size(), 0.0);
  for (std::size_t i = 0; i < points.row.size(); ++i) {
    ASSERT_LT(points.row[i], law.rows.size());
    const auto row = law.rows[points.row[i]];
    const auto x = points.x.row(static_cast<Eigen::Index>(i));
    ASSERT_EQ(x(0), row[0]);
    ASSERT_EQ(x(1), row[1]);
    ++counts[points.row[i]];
  }
  const auto size = static_cast<double>(law.rows.size());
  const auto total = static_cast<double>(points.row.size());
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
  EXPECT_EQ(message(normal_design(2, {1})), "mean: has 1 element, needs 2");
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
  return cdf(boost::math::normal(), x);
}
double laplace_distribution(double x) {
  return cdf(boost::math::laplace(0, std::sqrt(0.5)), x);
}
/// Student t of variance 1.
auto student_distribution(double df) {
  return [=](double x) {
    return cdf(boost::math::students_t_distribution<double, InDouble>(df),
               x * std::sqrt(df / (df - 2)));
  };
}

template <class Right, class Wrong>
void expect_distribution(const std::vector<double>& e, const Right& right, const Wrong& wrong) {
  EXPECT_LE(kolmogorov(e, right), kolmogorov_bound);
  EXPECT_GT(kolmogorov(e, wrong), kolmogorov_bound);
}
/// Draws of variance 1.
template <class Right, class Wrong>
void expect_noise(const std::vector<double>& e, double kurtosis, const Right& right,
                  const Wrong& wrong) {
  EXPECT_LE(noise_z(e, 1, kurtosis), z_bound);
  EXPECT_GT(noise_z(e, 1.02, kurtosis), z_bound);
  expect_distribution({e.begin(), e.begin() + 200000}, right, wrong);
}

TEST(NoiseLaws, HaveUnitVarianceAndTheirDistribution) {
  const auto normal = [](const auto& law, int draws) {
    expect_noise(unit_noise(law, draws), 3, normal_distribution, laplace_distribution);
  };
  {
    SCOPED_TRACE("normal");
    normal(NormalNoise{.sd = 3}, noise_draws);
  }
  {
    SCOPED_TRACE("heteroscedastic");
    normal(HeteroscedasticNoise{.sd = 3, .slope = 1, .direction = {1}}, 300000);
  }
  {
    SCOPED_TRACE("laplace");
    expect_noise(unit_noise(LaplaceNoise{.sd = 3}, noise_draws), 6, laplace_distribution,
                 normal_distribution);
  }
  {
    SCOPED_TRACE("student_t");  // of kurtosis 3 + 6/(df - 4), infinite for df = 3
    expect_noise(unit_noise(StudentNoise{.df = 10, .sd = 3}, noise_draws), 4,
                 student_distribution(10), laplace_distribution);
    expect_distribution(unit_noise(StudentNoise{.df = 3, .sd = 1}, 200000), student_distribution(3),
                        student_distribution(4));
  }
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
