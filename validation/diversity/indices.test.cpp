// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/indices.h"

#include <cmath>
#include <iomanip>
#include <limits>
#include <numbers>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/testing/refusal.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using nlohmann::json;

/// Passes only if err <= tol, so that NaN and null fail.
testing::AssertionResult close(std::optional<double> value, double expected,
                               double tolerance = 1e-12) {
  const bool passes = value && std::abs(*value - expected) <= tolerance;
  return (passes ? testing::AssertionSuccess() : testing::AssertionFailure())
         << std::setprecision(17) << value.value_or(std::nan("")) << " against " << expected;
}

std::vector<double> roots(const std::vector<double>& squares) {
  std::vector<double> result;
  for (double square : squares) result.push_back(std::sqrt(square));
  return result;
}

/// Haar-uniform frame [d][k]: Q of a normal matrix, signs fixed so that diag(R) > 0.
MatrixXd random_frame(Eigen::Index d, Eigen::Index k, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const MatrixXd draws = MatrixXd::NullaryExpr(d, k, [&] { return normal(random); });
  const Eigen::HouseholderQR<MatrixXd> qr(draws);
  const VectorXd signs =
      qr.matrixQR().diagonal().unaryExpr([](double r) { return r < 0 ? -1. : 1.; });
  return qr.householderQ() * MatrixXd::Identity(d, k) * signs.asDiagonal();
}

Matrices random_subspaces(Eigen::Index d, Eigen::Index k, int heads, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Matrices subspaces;
  for (int h = 0; h < heads; ++h) subspaces.push_back(random_frame(d, k, random));
  return subspaces;
}

/// Head h spans coordinates h k .. h k + k - 1.
Matrices orthogonal_subspaces(Eigen::Index d, Eigen::Index k, int heads) {
  Matrices subspaces;
  for (int h = 0; h < heads; ++h)
    subspaces.push_back(MatrixXd::Identity(d, d).middleCols(h * k, k));
  return subspaces;
}

/// Two frames [d][k] with these sines, in general position; d >= 2 k.
Matrices pair_with_sines(const std::vector<double>& sines, Eigen::Index d, std::uint64_t seed) {
  const auto k = static_cast<Eigen::Index>(sines.size());
  std::mt19937_64 random(seed);
  const MatrixXd rotation = random_frame(d, d, random);
  const VectorXd sine = Eigen::Map<const VectorXd>(sines.data(), k);
  const VectorXd cosine = sine.unaryExpr([](double s) { return std::sqrt((1 - s) * (1 + s)); });
  const MatrixXd a = rotation.leftCols(k);
  const MatrixXd b =
      a * cosine.asDiagonal() + MatrixXd(rotation.middleCols(k, k)) * sine.asDiagonal();
  return {a, b * random_frame(k, k, random)};
}

/// Of a square matrix.
VectorXd singular_values(const MatrixXd& matrix) {
  return Eigen::JacobiSVD<MatrixXd, Eigen::NoQRPreconditioner>(matrix).singularValues();
}

/// The definitions as written, pair by pair, angle by angle, Pbar in full.
struct Plain {
  double chordal, spectral, overlap, qk;
};

Plain plain_indices(const Matrices& w, double bandwidth, double temperature) {
  const auto d = w[0].rows(), k = w[0].cols();
  const auto heads = w.size();
  const double b2 = bandwidth * bandwidth, t2 = temperature * temperature;
  double cos2 = 0, rho = 0, qk = 0, pairs = 0;
  MatrixXd pbar = MatrixXd::Zero(d, d);
  for (std::size_t h = 0; h < heads; ++h) {
    pbar += w[h] * w[h].transpose() / static_cast<double>(heads);
    for (std::size_t l = 0; l < heads; ++l) {
      if (h == l) continue;
      double rho_hl = 1, qk_hl = 1;
      for (double c : singular_values(w[h].transpose() * w[l])) {
        cos2 += c * c / static_cast<double>(k);
        rho_hl *= std::sqrt(b2 * (2 + b2) / ((1 + b2) * (1 + b2) - c * c));
        qk_hl /= 1 + (1 - c * c) / t2;
      }
      rho += rho_hl, qk += qk_hl, pairs += 1;
    }
  }
  double entropy = 0;
  for (double value : singular_values(pbar)) {
    const double p = value / static_cast<double>(k);
    if (p > 1e-15) entropy -= p * std::log(p);
  }
  const auto reach = std::min(static_cast<Eigen::Index>(heads) * k, d);
  return {1 - cos2 / pairs,
          (std::exp(entropy) - static_cast<double>(k)) / static_cast<double>(reach - k),
          1 - rho / pairs, 1 - qk / pairs};
}

void expect_same(const std::vector<Index>& left, const std::vector<Index>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    ASSERT_TRUE(right[i].value) << right[i].name;
    EXPECT_TRUE(close(left[i].value, *right[i].value)) << left[i].name;
  }
}

TEST(Comparator, FailsOnPerturbationNanAndNull) {
  EXPECT_TRUE(close(0.5, 0.5 + 1e-13));
  EXPECT_FALSE(close(0.5, 0.5 * (1 + 1e-9)));
  EXPECT_FALSE(close(std::nan(""), 0.5));
  EXPECT_FALSE(close(0.5, std::nan("")));
  EXPECT_FALSE(close(std::nullopt, 0.5));
}

TEST(Overlap, KnownAnswers) {
  const json& cases = test::known("overlap");
  ASSERT_GE(cases.size(), 4U);
  for (const json& c : cases) {
    const auto cosines = roots(c.at("cos2").get<std::vector<double>>());
    const double b = c.at("bandwidth"), rho = c.at("rho");
    EXPECT_TRUE(close(overlap(cosines, b), rho));
    EXPECT_FALSE(close(overlap(cosines, b), rho * (1 + 1e-9)));
    EXPECT_FALSE(close(overlap(cosines, b * (1 + 1e-9)), rho));
  }
}

Index overlap_index(const Matrices& subspaces, double bandwidth) {
  return subspace_indices(subspaces, bandwidth, {})[2];
}

Index query_key_index(const Matrices& subspaces, double temperature) {
  return subspace_indices(subspaces, {}, temperature)[3];
}

TEST(Indices, KnownAnswers) {
  const json& cases = test::known("indices");
  ASSERT_GE(cases.size(), 2U);
  for (const json& c : cases) {
    const Eigen::Index d = c.at("d"), k = c.at("k");
    Matrices subspaces;
    for (const json& head : c.at("W")) {
      subspaces.push_back(MatrixXd::NullaryExpr(d, k, [&](Eigen::Index i, Eigen::Index j) {
        return head.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(j)).get<double>();
      }));
    }
    ASSERT_EQ(subspaces.size(), c.at("H").get<std::size_t>());
    const auto indices = subspace_indices(subspaces, 0.3, {});
    const char* keys[] = {"chordal", "spectral", "overlap_b03"};
    for (std::size_t i = 0; i < 3; ++i) {
      const double expected = c.at(keys[i]);
      EXPECT_TRUE(close(indices[i].value, expected)) << keys[i];
      EXPECT_FALSE(close(indices[i].value, expected * (1 + 1e-9))) << keys[i];
    }
    EXPECT_FALSE(indices[3].value);
    Matrices turned = subspaces;  // control: heads turned against each other by 1e-6
    const VectorXd first = turned[0].row(0), second = turned[0].row(1);
    turned[0].row(0) = std::cos(1e-6) * first - std::sin(1e-6) * second;
    turned[0].row(1) = std::sin(1e-6) * first + std::cos(1e-6) * second;
    const auto moved = subspace_indices(turned, 0.3, {});
    for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(close(moved[i].value, c.at(keys[i])));
  }
}

TEST(Indices, NamesOrderAndNulls) {
  const auto subspaces = random_subspaces(6, 2, 3, 1);
  const auto names = [](const std::vector<Index>& indices) {
    std::string text;
    for (const Index& index : indices) text += index.name + (index.value ? "+ " : "- ");
    return text;
  };
  EXPECT_EQ(names(subspace_indices(subspaces, 0.3, {})), "chordal+ spectral+ overlap+ qk- ");
  EXPECT_EQ(names(subspace_indices(subspaces, {}, 1.4)), "chordal+ spectral+ overlap- qk+ ");
  EXPECT_EQ(names(subspace_indices(subspaces, {}, {})), "chordal+ spectral+ overlap- qk- ");
  EXPECT_EQ(names(subspace_indices({subspaces[0]}, 0.3, 1.4)), "chordal- spectral- overlap- qk- ");
  for (const Index& index : subspace_indices({subspaces[0]}, 0.3, 1.4))
    EXPECT_FALSE(index.upper_bound);
}

TEST(Indices, AlignedHeadsGiveZero) {
  std::mt19937_64 random(2);
  const auto frame = random_subspaces(40, 5, 1, 3)[0];
  Matrices aligned;  // one subspace, a new basis for every head
  for (int h = 0; h < 12; ++h) aligned.push_back(frame * random_frame(5, 5, random));
  for (const Index& index : subspace_indices(aligned, 0.05, 0.7)) {
    EXPECT_TRUE(close(index.value, 0)) << index.name;
  }
  aligned[0] = pair_with_sines({1e-4, 1e-4, 1e-4, 1e-4, 1e-4}, 40, 4)[1];
  for (const Index& index : subspace_indices(aligned, 0.05, 0.7)) {
    EXPECT_FALSE(close(index.value, 0)) << index.name;
  }
}

TEST(Indices, OrthogonalHeadsReachTheCeiling) {
  const double b = 0.3, t = 1.4, gamma2 = b * b * (2 + b * b);
  const auto subspaces = orthogonal_subspaces(9, 2, 4);
  const auto indices = subspace_indices(subspaces, b, t);
  for (const Index& index : indices) {
    ASSERT_TRUE(index.upper_bound) << index.name;
    EXPECT_TRUE(close(index.value, *index.upper_bound)) << index.name;
  }
  EXPECT_TRUE(close(indices[0].upper_bound, 1));
  EXPECT_TRUE(close(indices[1].upper_bound, 1));
  EXPECT_TRUE(close(indices[2].upper_bound, 1 - gamma2 / (1 + gamma2)));
  EXPECT_TRUE(close(indices[3].upper_bound, 1 - std::pow(1 + 1 / (t * t), -2)));
  for (const Index& index : subspace_indices(random_subspaces(9, 2, 4, 5), b, t)) {
    EXPECT_FALSE(close(index.value, *index.upper_bound)) << index.name;
  }
}

TEST(Indices, TightFrameReachesTheCeilingBelowOne) {
  Matrices lines;  // three lines in the plane at 60 degrees: Pbar = I/2
  for (int h = 0; h < 3; ++h) {
    const double angle = h * std::numbers::pi / 3;
    lines.push_back(Eigen::Vector2d(std::cos(angle), std::sin(angle)));
  }
  const auto indices = subspace_indices(lines, 0.3, 1.0);
  EXPECT_TRUE(close(indices[0].value, 0.75));
  EXPECT_TRUE(close(indices[0].upper_bound, 0.75));
  EXPECT_TRUE(close(indices[1].value, 1));
  EXPECT_TRUE(close(indices[3].value, 1 - 1 / 1.75));  // sin^2 60 = 3/4
}

TEST(Indices, FullDimensionalHeadsAreAllAligned) {
  const auto indices = subspace_indices(random_subspaces(4, 4, 3, 6), 0.3, 2.0);
  EXPECT_TRUE(close(indices[0].value, 0));
  EXPECT_TRUE(close(indices[0].upper_bound, 0));
  EXPECT_FALSE(indices[1].value);
  EXPECT_FALSE(indices[1].upper_bound);
  EXPECT_TRUE(close(indices[2].value, 0));
  EXPECT_TRUE(close(indices[3].value, 0));
}

TEST(Indices, ChordalInvertsTheOrderOfOverlap) {
  const auto uneven = pair_with_sines(roots({0.05, 1.0}), 6, 7);
  const auto even = pair_with_sines(roots({0.5, 0.5}), 6, 8);
  EXPECT_TRUE(close(chordal_index(uneven).value, 0.525));
  EXPECT_TRUE(close(chordal_index(even).value, 0.500));
  EXPECT_TRUE(close(overlap_index(uneven, 0.3).value, 1 - 0.35365727795444424));
  EXPECT_TRUE(close(overlap_index(even, 0.3).value, 1 - 0.27336143002470575));
  // More diverse by the one, less by the other.
  EXPECT_GT(*chordal_index(uneven).value, *chordal_index(even).value);
  EXPECT_LT(*overlap_index(uneven, 0.3).value, *overlap_index(even, 0.3).value);
}

TEST(Indices, EfficientIsEquivalentToPlain) {
  const int shapes[][3] = {{70, 5, 9}, {40, 5, 12}, {45, 5, 9}, {7, 1, 2}, {11, 8, 3}};  // d, k, H
  for (const auto& [d, k, heads] : shapes) {
    const auto subspaces = random_subspaces(d, k, heads, static_cast<std::uint64_t>(d));
    for (double scale : {0.05, 0.5, 2.0}) {
      const auto indices = subspace_indices(subspaces, scale, scale);
      const auto plain = plain_indices(subspaces, scale, scale);
      const double expected[] = {plain.chordal, plain.spectral, plain.overlap, plain.qk};
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(close(indices[i].value, expected[i])) << indices[i].name << " at d = " << d;
        EXPECT_FALSE(close(indices[i].value, expected[i] * (1 + 1e-9))) << indices[i].name;
      }
    }
  }
}

TEST(Indices, NarrowWindowsKeepSmallSines) {
  // Right angles with tiny ones, in mixed bases: what I - M^T M would lose. Both routes are met.
  const std::vector<double> sines{1, 0.3, 1e-3, 1e-5};
  const auto pair = pair_with_sines(sines, 30, 9);
  for (double b : {1e-3, 1e-2, 0.04, 0.05, 0.3}) {
    long double rho = 1, qk = 1;
    for (double s : sines) {
      const long double b2 = static_cast<long double>(b) * b, s2 = static_cast<long double>(s) * s;
      rho /= std::sqrt(1 + s2 / (b2 * (2 + b2))), qk /= 1 + s2 / b2;
    }
    EXPECT_TRUE(close(overlap_index(pair, b).value, static_cast<double>(1 - rho))) << b;
    EXPECT_TRUE(close(query_key_index(pair, b).value, static_cast<double>(1 - qk))) << b;
  }
  // All sines small: the index is small and its relative error is what counts.
  const auto near = pair_with_sines({1e-5, 2e-5}, 30, 10);
  const double gamma2 = 1e-6 * (2 + 1e-6);
  const double expected =
      -std::expm1(-0.5 * (std::log1p(1e-10 / gamma2) + std::log1p(4e-10 / gamma2)));
  EXPECT_TRUE(close(overlap_index(near, 1e-3).value, expected, 1e-9 * expected));
  // Control: the plain formula, which goes through the cosines, does not hold that.
  EXPECT_FALSE(close(plain_indices(near, 1e-3, 1).overlap, expected, 1e-9 * expected));
}

TEST(Indices, DependOnTheSubspacesAlone) {
  const auto subspaces = random_subspaces(20, 3, 5, 11);
  const auto indices = subspace_indices(subspaces, 0.3, 1.2);
  std::mt19937_64 random(12);
  const MatrixXd rotation = random_frame(20, 20, random);
  Matrices rebased, rotated, imprecise;
  for (const MatrixXd& w : subspaces) {
    rebased.push_back(w * random_frame(3, 3, random));
    rotated.push_back(rotation * w);
    imprecise.push_back(w * (1 + 4e-9));  // inside the tolerance; the span is the same
  }
  expect_same(subspace_indices(rebased, 0.3, 1.2), indices);
  expect_same(subspace_indices(rotated, 0.3, 1.2), indices);
  expect_same(subspace_indices(imprecise, 0.3, 1.2), indices);
  rotated[0] = subspaces[0];  // control: one head left behind
  const auto moved = subspace_indices(rotated, 0.3, 1.2);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(close(moved[i].value, *indices[i].value));
}

TEST(PrincipalCosines, OfAKnownPair) {
  const auto pair = pair_with_sines({0.6, 0.0, 1.0}, 8, 13);
  const auto cosines = principal_cosines(pair[0], pair[1]);
  ASSERT_EQ(cosines.size(), 3U);
  EXPECT_TRUE(close(cosines[0], 1));
  EXPECT_TRUE(close(cosines[1], 0.8));
  EXPECT_TRUE(close(cosines[2], 0));
  EXPECT_FALSE(close(cosines[1], 0.8 * (1 + 1e-9)));
  for (double c : cosines) EXPECT_TRUE(c >= 0 && c <= 1);
  // The indices take another path to the same angles.
  const auto wide = random_subspaces(100, 40, 2, 14);
  EXPECT_TRUE(close(overlap(principal_cosines(wide[0], wide[1]), 0.5),
                    1 - *overlap_index(wide, 0.5).value));
}

TEST(Overlap, ExtremesAreFinite) {
  EXPECT_EQ(overlap({1, 1}, 1e-100), 1);
  EXPECT_EQ(overlap({0, 0}, 1e100), 1);
  EXPECT_TRUE(close(overlap({0, 1}, 1e-100), 0));
  const auto subspaces = random_subspaces(9, 2, 4, 15);
  for (double scale : {1e-100, 1e100}) {
    EXPECT_TRUE(close(overlap_index(subspaces, scale).value, scale < 1 ? 1 : 0));
    EXPECT_TRUE(close(query_key_index(subspaces, scale).value, scale < 1 ? 1 : 0));
  }
}

TEST(HaarNull, MatchesSimulation) {
  const int d = 6, k = 2, heads = 3, replicates = 20000;
  const double bound = 4;  // two-sided 6e-5 for each of the two z below
  std::mt19937_64 random(16);
  VectorXd values(replicates);
  for (double& value : values) {
    Matrices subspaces;
    for (int h = 0; h < heads; ++h) subspaces.push_back(random_frame(d, k, random));
    value = *chordal_index(subspaces).value;
  }
  const HaarNull null = haar_null(d, k, heads);
  const auto mean_z = [&](double mean, double sd) {
    return (values.mean() - mean) / (sd / std::sqrt(replicates));
  };
  const auto variance_z = [&](double mean, double sd) {
    const Eigen::ArrayXd squares = (values.array() - mean).square();
    const double spread = (squares - squares.mean()).square().mean() / replicates;
    return (squares.mean() - sd * sd) / std::sqrt(spread);
  };
  EXPECT_TRUE(std::abs(mean_z(null.mean, null.sd)) <= bound) << mean_z(null.mean, null.sd);
  EXPECT_TRUE(std::abs(variance_z(null.mean, null.sd)) <= bound) << variance_z(null.mean, null.sd);
  // Controls: a neighbouring d in the mean, d - 1 taken for d + 2 in the variance.
  EXPECT_FALSE(std::abs(mean_z(1.0 - double(k) / (d + 0.1), null.sd)) <= bound);
  EXPECT_FALSE(std::abs(variance_z(null.mean, null.sd * std::sqrt(8.0 / 5.0))) <= bound);
}

TEST(HaarNull, ByHand) {
  EXPECT_TRUE(close(haar_null(2, 1, 2).mean, 0.5));  // sin^2 of a uniform angle
  EXPECT_TRUE(close(haar_null(2, 1, 2).sd, std::sqrt(0.125)));
  EXPECT_EQ(haar_null(1, 1, 2).sd, 0);
  EXPECT_EQ(haar_null(5, 5, 3).mean, 0);
  EXPECT_TRUE(close(output_index_upper_bound(4), 4.0 / 3.0));
}

TEST(Refusals, AreOneLine) {
  const auto subspaces = random_subspaces(6, 2, 3, 17);
  const auto refusal = [](const auto& action) {
    return refusal_line<std::invalid_argument>(action);
  };
  Matrices ragged = subspaces, stretched = subspaces, poisoned = subspaces;
  ragged[1] = ragged[1].leftCols(1).eval();
  stretched[2] *= 1 + 1e-8;
  poisoned[0](3, 1) = std::numeric_limits<double>::quiet_NaN();
  const MatrixXd wide = MatrixXd::Identity(2, 3), empty(3, 0);
  const std::vector<std::string> messages{
      refusal([&] { chordal_index({}); }),
      refusal([&] { chordal_index(ragged); }),
      refusal([&] { subspace_indices(stretched, {}, {}); }),
      refusal([&] { overlap_index(poisoned, 0.3); }),
      refusal([&] { chordal_index({wide}); }),
      refusal([&] { chordal_index({empty}); }),
      refusal([&] { principal_cosines(subspaces[0], ragged[1]); }),
      refusal([&] { overlap_index(subspaces, std::nan("")); }),
      refusal([&] { query_key_index(subspaces, -1); }),
      refusal([&] { subspace_indices(subspaces, 0.0, {}); }),
      refusal([&] { overlap({}, 0.3); }),
      refusal([&] { overlap({1.0 + 1e-15}, 0.3); }),
      refusal([&] { haar_null(3, 4, 2); }),
      refusal([&] { haar_null(3, 1, 1); }),
      refusal([&] { output_index_upper_bound(1); })};
  for (const std::string& message : messages) EXPECT_NE(message, "accepted");
  EXPECT_EQ(messages[1], "subspace 1 is 6 x 1 but subspace 0 is 6 x 2");
  EXPECT_EQ(refusal([&] { chordal_index(subspaces); }), "accepted");  // control
}

}  // namespace
}  // namespace headlab
