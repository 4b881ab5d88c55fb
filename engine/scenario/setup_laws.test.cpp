// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/setup_laws.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "engine/scenario/subspaces.h"
#include "kernels/design_point.h"
#include "kernels/laws.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

using Frames = std::vector<Eigen::MatrixXd>;

template <class Law>
Frames generate(const Law& law, const Sizes& sizes) {
  law.check(sizes);
  const Frames subspaces = to_matrices(law.generate(sizes));
  EXPECT_EQ(subspaces.size(), static_cast<std::size_t>(sizes.heads));
  for (const auto& w : subspaces) {
    EXPECT_EQ(w.rows(), sizes.d);
    EXPECT_EQ(w.cols(), sizes.k);
  }
  return subspaces;
}

/// Largest element of |W_h^T W_l - gram I| over pairs, with 1 for h = l.
double off_gram(const Frames& subspaces, double gram) {
  double worst = 0;
  for (std::size_t h = 0; h < subspaces.size(); ++h) {
    for (std::size_t l = 0; l < subspaces.size(); ++l) {
      const Eigen::MatrixXd product = subspaces[h].transpose() * subspaces[l];
      const Eigen::MatrixXd wanted =
          (h == l ? 1.0 : gram) * Eigen::MatrixXd::Identity(product.rows(), product.cols());
      worst = std::max(worst, (product - wanted).cwiseAbs().maxCoeff());
    }
  }
  return worst;
}

double off_orthonormal(const Frames& subspaces) {
  double worst = 0;
  for (const auto& w : subspaces) worst = std::max(worst, off_gram({w}, 1));
  return worst;
}

/// Cosines of the principal angles, largest first.
Eigen::VectorXd cosines(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  const Eigen::MatrixXd product = a.transpose() * b;  // square, so there is nothing to precondition
  return Eigen::JacobiSVD<Eigen::MatrixXd, Eigen::NoQRPreconditioner>(product).singularValues();
}

/// "key: problem" of what a check refuses, empty where it does not.
template <class Law, class Argument>
std::string refusal(const Law& law, const Argument& argument) {
  try {
    law.check(argument);
  } catch (const ParameterError& error) {
    return error.key() + ": " + error.what();
  }
  return "";
}

// Subspaces ---------------------------------------------------------------------------------------

TEST(Subspaces, OrthogonalAndAligned) {
  const Sizes sizes{.d = 7, .heads = 3, .k = 2, .n = 1};
  EXPECT_EQ(off_gram(generate(OrthogonalSubspaces{}, sizes), 0), 0);
  EXPECT_EQ(off_gram(generate(AlignedSubspaces{}, sizes), 1), 0);
  EXPECT_EQ(off_gram(generate(AlignedSubspaces{}, sizes), 0), 1);
}

TEST(Subspaces, BlocksOwnTheNextCoordinates) {
  const Sizes sizes{.d = 8, .heads = 3, .k = 4, .n = 1};
  const BlockSubspaces law{.sizes = PerHead{{2, 4, 1}}};
  EXPECT_EQ(refusal(law, sizes), "");
  const Subspaces blocks = law.generate(sizes);
  EXPECT_FALSE(blocks.orthonormal());
  int next = 0;
  for (int h = 0; h < 3; ++h) {
    const int size = static_cast<int>(law.sizes[h]);
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 4; ++j) {
        EXPECT_EQ(blocks(h, i, j), j < size && i == next + j ? 1 : 0) << h << i << j;
      }
    }
    next += size;
  }
  // Bases have the columns that are there.
  const Frames bases = to_matrices(blocks);
  EXPECT_EQ(bases[0].cols(), 2);
  EXPECT_EQ(bases[1].cols(), 4);
  EXPECT_EQ(bases[2].cols(), 1);
  EXPECT_EQ(off_gram({bases[0]}, 1), 0);
  // Of one size they are the orthogonal heads.
  const Sizes equal{.d = 8, .heads = 3, .k = 2, .n = 1};
  const BlockSubspaces same{.sizes = PerHead{{2, 2, 2}}};
  EXPECT_TRUE(same.generate(equal).orthonormal());
  EXPECT_EQ(same.generate(equal).numbers(), OrthogonalSubspaces{}.generate(equal).numbers());
  EXPECT_EQ(refusal(BlockSubspaces{.sizes = PerHead{{2, 4}}}, sizes),
            "sizes: has 2 elements, needs one for all heads or one each (3)");
  EXPECT_EQ(refusal(BlockSubspaces{.sizes = PerHead{{2, 3, 1}}}, sizes),
            "sizes: have the largest size 3, but heads.dim is 4");
  EXPECT_EQ(refusal(BlockSubspaces{.sizes = PerHead{{2, 4, 3}}}, sizes),
            "sizes: have the sum 9, more than the dimension d = 8 of the design");
}

TEST(Subspaces, PrincipalAnglesAreRecovered) {
  const Sizes sizes{.d = 9, .heads = 3, .k = 3, .n = 1};
  const PrincipalAngleSubspaces law{.angles = {0.2, 1.0, std::numbers::pi / 2}};
  const Frames subspaces = generate(law, sizes);
  EXPECT_LE(off_orthonormal(subspaces), 2 * eps);
  for (std::size_t h = 1; h < 3; ++h) {
    const Eigen::VectorXd c = cosines(subspaces[0], subspaces[h]);
    for (int j = 0; j < 3; ++j) {
      EXPECT_NEAR(c(j), j == 2 ? 0 : std::cos(law.angles[static_cast<std::size_t>(j)]), 4 * eps);
    }
  }
  // Heads that both turned from the first meet at the product of their cosines.
  const Eigen::VectorXd between = cosines(subspaces[1], subspaces[2]);
  EXPECT_NEAR(between(0), std::pow(std::cos(0.2), 2), 4 * eps);
  EXPECT_NEAR(between(1), std::pow(std::cos(1.0), 2), 4 * eps);
  EXPECT_GT(std::abs(between(1) - std::cos(1.0)), 0.1);
}

TEST(Subspaces, ARightAngleMayBeWrittenWithFiveDigits) {
  const Frames subspaces = generate(PrincipalAngleSubspaces{.angles = {0, 1.5708}},
                                    Sizes{.d = 4, .heads = 2, .k = 2, .n = 1});
  EXPECT_EQ(cosines(subspaces[0], subspaces[1])(0), 1);
  EXPECT_EQ(cosines(subspaces[0], subspaces[1])(1), 0);
}

TEST(Subspaces, EquiangularGramIsExact) {
  for (const int heads : {1, 2, 5, 40}) {
    for (const double angle : {1.5, 1.0, 0.1, 1e-3, 1e-9}) {
      const Sizes sizes{.d = heads * 2 + 1, .heads = heads, .k = 2, .n = 1};
      const Frames subspaces = generate(EquiangularSubspaces{.angle = angle}, sizes);
      // A dot product of H terms whose absolute values sum to at most 1: H roundings and those of
      // the factors.
      EXPECT_LE(off_gram(subspaces, std::cos(angle)), (heads + 8) * eps) << heads << " " << angle;
    }
  }
  const Sizes sizes{.d = 6, .heads = 3, .k = 2, .n = 1};
  EXPECT_GT(off_gram(generate(EquiangularSubspaces{.angle = 1}, sizes), std::cos(1.001)), 1e-4);
}

TEST(Subspaces, EquiangularKeepsSmallAngles) {
  // |W_1 - W_2|^2 = 2 (1 - c) a column: lost in rounding if it were made from c = 1 - 5e-19.
  const double angle = 1e-9;
  const Frames subspaces =
      generate(EquiangularSubspaces{.angle = angle}, Sizes{.d = 2, .heads = 2, .k = 1, .n = 1});
  EXPECT_NEAR((subspaces[0] - subspaces[1]).norm() / angle, 1, 1e-6);
}

TEST(Subspaces, HaarIsOrthonormalAndRepeatable) {
  const Sizes sizes{.d = 9, .heads = 4, .k = 5, .n = 1};
  const Frames subspaces = generate(HaarSubspaces{.seed = 5}, sizes);
  EXPECT_LE(off_orthonormal(subspaces), 9 * eps);
  const Frames more = generate(HaarSubspaces{.seed = 5}, Sizes{.d = 9, .heads = 6, .k = 5, .n = 1});
  for (std::size_t h = 0; h < 4; ++h) EXPECT_EQ(subspaces[h], more[h]);
  EXPECT_NE(subspaces[0], subspaces[1]);
  EXPECT_NE(subspaces[0], generate(HaarSubspaces{.seed = 6}, sizes)[0]);
  const Frames square = generate(HaarSubspaces{}, Sizes{.d = 4, .heads = 3, .k = 4, .n = 1});
  EXPECT_LE(off_orthonormal(square), 4 * eps);
}

/// Largest |z| over the means of W_ij, W_ij^2 and W_i1 W_l2, with, for Haar measure on orthonormal
/// columns in R^d, E W_ij = 0, E W_ij^2 = 1/d, E W_ij^4 = 3/(d(d+2)), E W_i1 W_l2 = 0,
/// E W_i1^2 W_i2^2 = 1/(d(d+2)), E W_i1^2 W_l2^2 = (d+1)/(d(d-1)(d+2)) for i != l.
double haar_z(const Frames& subspaces) {
  const auto count = static_cast<double>(subspaces.size());
  const auto d = static_cast<double>(subspaces[0].rows());
  const Eigen::Index rows = subspaces[0].rows();
  double worst = 0;
  auto look = [&](double sum, double variance) {
    worst = std::max(worst, std::abs(sum) / std::sqrt(count * variance));
  };
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index j = 0; j < 2; ++j) {
      double first = 0;
      double second = 0;
      for (const auto& w : subspaces) {
        first += w(i, j);
        second += w(i, j) * w(i, j) - 1 / d;
      }
      look(first, 1 / d);
      look(second, 3 / (d * (d + 2)) - 1 / (d * d));
    }
    for (Eigen::Index l = 0; l < rows; ++l) {
      double cross = 0;
      for (const auto& w : subspaces) cross += w(i, 0) * w(l, 1);
      look(cross, i == l ? 1 / (d * (d + 2)) : (d + 1) / (d * (d - 1) * (d + 2)));
    }
  }
  return worst;
}

TEST(Subspaces, HaarHasItsMoments) {
  const Frames subspaces =
      generate(HaarSubspaces{.seed = 1}, Sizes{.d = 5, .heads = 8000, .k = 2, .n = 1});
  EXPECT_LE(haar_z(subspaces), z_bound);
  // QR without its signs: the first diagonal of R is negative for every head.
  Frames unsigned_subspaces = subspaces;
  for (auto& w : unsigned_subspaces) {
    if (w(0, 0) > 0) w.col(0) *= -1;
  }
  EXPECT_GT(haar_z(unsigned_subspaces), z_bound);
}

TEST(Subspaces, HaarPairsOverlapByChance) {
  // |W_h^T W_l|_F^2/k has mean k/d and variance 2 (d-k)^2/(d^2 (d-1)(d+2)).
  constexpr double d = 6;
  constexpr double k = 2;
  const Frames subspaces =
      generate(HaarSubspaces{.seed = 2}, Sizes{.d = 6, .heads = 8000, .k = 2, .n = 1});
  auto z = [](const std::vector<double>& overlaps, double mean) {
    double sum = 0;
    for (const double value : overlaps) sum += value - mean;
    const double variance = 2 * (d - k) * (d - k) / (d * d * (d - 1) * (d + 2));
    return std::abs(sum) / std::sqrt(static_cast<double>(overlaps.size()) * variance);
  };
  std::vector<double> overlaps;
  for (std::size_t h = 0; h < subspaces.size(); h += 2) {
    overlaps.push_back((subspaces[h].transpose() * subspaces[h + 1]).squaredNorm() / k);
  }
  EXPECT_LE(z(overlaps, k / d), z_bound);
  EXPECT_GT(z(overlaps, 1.05 * k / d), z_bound);
}

TEST(Subspaces, ExplicitKeepsWhatIsGiven) {
  const double c = std::sqrt(0.5);
  const Sizes sizes{.d = 3, .heads = 2, .k = 2, .n = 1};
  ExplicitSubspaces law;
  law.matrices = {{{c, 0}, {0, 1}, {-c, 0}}, {{1, 0}, {0, -1}, {0, 0}}};
  for (const bool orthonormalise : {false, true}) {
    law.orthonormalise = orthonormalise;
    const Frames subspaces = generate(law, sizes);
    for (std::size_t h = 0; h < 2; ++h) {
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 2; ++j) {
          const double given =
              law.matrices[h][static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
          EXPECT_NEAR(subspaces[h](i, j), given, orthonormalise ? 4 * eps : 0) << h << i << j;
        }
      }
    }
  }
}

TEST(Subspaces, ExplicitOrthonormalisesFromTheFirstColumnOn) {
  ExplicitSubspaces law;
  law.matrices = {{{3, 1}, {4, 2}, {0, 2}}};
  law.orthonormalise = true;
  const Frames subspaces = generate(law, Sizes{.d = 3, .heads = 1, .k = 2, .n = 1});
  // q1 = (3, 4, 0)/5; column 2 less 2.2 q1 is (-.32, .24, 2), of length sqrt(4.16).
  EXPECT_NEAR(subspaces[0](0, 0), 0.6, 4 * eps);
  EXPECT_NEAR(subspaces[0](1, 0), 0.8, 4 * eps);
  EXPECT_NEAR(subspaces[0](0, 1), -0.32 / std::sqrt(4.16), 4 * eps);
  EXPECT_NEAR(subspaces[0](2, 1), 2 / std::sqrt(4.16), 4 * eps);
}

TEST(Subspaces, ExplicitRefusesWhatDoesNotFit) {
  const Sizes sizes{.d = 3, .heads = 1, .k = 2, .n = 1};
  ExplicitSubspaces law;
  law.matrices = {{{1, 0}, {0, 1}, {0, 0.001}}};
  EXPECT_EQ(refusal(law, sizes),
            "matrices: matrix of head 0 has columns that are off orthonormal by 1e-06 (allowed: "
            "1e-10) - set orthonormalise = true");
  law.orthonormalise = true;
  EXPECT_EQ(refusal(law, sizes), "");
  law.matrices = {{{1, 2}, {1, 2}, {1, 2}}};
  EXPECT_EQ(refusal(law, sizes),
            "matrices: matrix of head 0 has rank below k: column 2 depends on those before it");
  law.matrices = {{{1, 0}, {1, 0}, {1, 0}}};
  EXPECT_NE(refusal(law, sizes), "");
  law.matrices = {{{1, 0}, {0, 1}}};
  EXPECT_EQ(refusal(law, sizes), "matrices: matrix of head 0 has 2 rows, needs d x k = 3 x 2");
  law.matrices = {{{1, 0}, {0, 1}, {0}}};
  EXPECT_EQ(refusal(law, sizes),
            "matrices: matrix of head 0 has 1 element in row 3, needs d x k = 3 x 2");
  law.matrices = {};
  EXPECT_EQ(refusal(law, sizes), "matrices: has 0 matrices, needs 1, one for each head");
}

TEST(Subspaces, CoordinatesAreOrthonormalAndRepeatable) {
  const Sizes sizes{.d = 9, .heads = 4, .k = 5, .n = 1};
  const Frames subspaces = generate(CoordinateSubspaces{.seed = 5}, sizes);
  EXPECT_EQ(off_orthonormal(subspaces), 0);
  for (const auto& w : subspaces) EXPECT_EQ(w.sum(), 5);
  const Frames more =
      generate(CoordinateSubspaces{.seed = 5}, Sizes{.d = 9, .heads = 6, .k = 5, .n = 1});
  for (std::size_t h = 0; h < 4; ++h) EXPECT_EQ(subspaces[h], more[h]);
  EXPECT_NE(subspaces[0], subspaces[1]);
  EXPECT_NE(subspaces, generate(CoordinateSubspaces{.seed = 6}, sizes));
  const Frames square = generate(CoordinateSubspaces{}, Sizes{.d = 4, .heads = 2, .k = 4, .n = 1});
  EXPECT_EQ(square[1], Eigen::MatrixXd::Identity(4, 4));
}

/// Largest |z| of the counts with which pairs of coordinates are in a head's subset: each of the
/// d (d-1)/2 pairs has probability p = k (k-1)/(d (d-1)).
double pair_z(const Frames& subspaces) {
  const auto count = static_cast<double>(subspaces.size());
  const Eigen::Index d = subspaces[0].rows();
  const auto k = static_cast<double>(subspaces[0].cols());
  const double p = k * (k - 1) / static_cast<double>(d * (d - 1));
  double worst = 0;
  for (Eigen::Index i = 0; i < d; ++i) {
    for (Eigen::Index l = 0; l < i; ++l) {
      double both = 0;
      for (const auto& w : subspaces) both += w.row(i).sum() * w.row(l).sum();
      worst = std::max(worst, std::abs(both - count * p) / std::sqrt(count * p * (1 - p)));
    }
  }
  return worst;
}

TEST(Subspaces, CoordinatesAreEquallyProbable) {
  Frames subspaces =
      generate(CoordinateSubspaces{.seed = 1}, Sizes{.d = 6, .heads = 8000, .k = 3, .n = 1});
  EXPECT_LE(pair_z(subspaces), z_bound);
  // Negative control: one head in twenty has the first coordinates.
  for (std::size_t h = 0; h < subspaces.size(); h += 20) {
    subspaces[h] = Eigen::MatrixXd::Identity(6, 3);
  }
  EXPECT_GT(pair_z(subspaces), z_bound);
}

TEST(Subspaces, RefuseMoreDirectionsThanThereAre) {
  const Sizes sizes{.d = 5, .heads = 3, .k = 2, .n = 1};
  const std::string wanted = ": needs H k <= d, here 3 x 2 > 5";
  EXPECT_EQ(refusal(OrthogonalSubspaces{}, sizes), wanted);
  EXPECT_EQ(refusal(EquiangularSubspaces{.angle = 1}, sizes), wanted);
  EXPECT_EQ(refusal(PrincipalAngleSubspaces{.angles = {1, 1}}, sizes), wanted);
  EXPECT_EQ(refusal(AlignedSubspaces{}, sizes), "");
  EXPECT_EQ(refusal(HaarSubspaces{}, sizes), "");
  const Sizes wide{.d = 1, .heads = 1, .k = 2, .n = 1};
  EXPECT_EQ(refusal(AlignedSubspaces{}, wide), ": needs k <= d, here 2 > 1");
  EXPECT_EQ(refusal(HaarSubspaces{}, wide), ": needs k <= d, here 2 > 1");
  EXPECT_EQ(refusal(CoordinateSubspaces{}, wide), ": needs k <= d, here 2 > 1");
}

// Weights -----------------------------------------------------------------------------------------

TEST(Weights, AtHandValues) {
  const Sizes sizes{.d = 1, .heads = 3, .k = 1, .n = 1};
  EXPECT_EQ(UniformWeights{}.values(sizes), std::vector<double>(3, 1.0 / 3));
  EXPECT_EQ((ExplicitWeights{.weights = {2, -1, 7}}.values(sizes)),
            (std::vector<double>{2, -1, 7}));
  EXPECT_EQ(GeometricWeights{.ratio = 1}.values(sizes), std::vector<double>(3, 1.0 / 3));
  EXPECT_EQ(GeometricWeights{.ratio = 0.5}.values(sizes),
            (std::vector<double>{1 / 1.75, 0.5 / 1.75, 0.25 / 1.75}));
  EXPECT_EQ(GeometricWeights{.ratio = 2}.values(sizes),
            (std::vector<double>{0.25 / 1.75, 0.5 / 1.75, 1 / 1.75}));
}

TEST(Weights, GeometricSumsToOneAtItsExtremes) {
  const Sizes sizes{.d = 1, .heads = 500, .k = 1, .n = 1};
  for (const double ratio : {1e3, 1e-300, 0.99, 1.01}) {
    double sum = 0;
    for (const double a : GeometricWeights{.ratio = ratio}.values(sizes)) sum += a;
    EXPECT_NEAR(sum, 1, 500 * eps) << ratio;
  }
}

TEST(Weights, RefuseWhatDoesNotFit) {
  const Sizes sizes{.d = 1, .heads = 3, .k = 1, .n = 1};
  EXPECT_EQ(refusal(ExplicitWeights{.weights = {1, 2, 3}}, sizes), "");
  EXPECT_THROW(OptimalWeights{}.values(sizes), ParameterError);
}

// Queries -----------------------------------------------------------------------------------------

TEST(Queries, PointsAreKeptRowByRow) {
  const PointQueries law{.points = {{1, 2}, {0.1, 4}}};
  law.check(2);
  Table table;
  const QuerySet set = law.generate(2, NormalDesign{}.sampler(table), table);
  EXPECT_EQ(set.points, (std::vector<double>{1, 2, 0.1, 4}));
  EXPECT_TRUE(set.rows.empty());
  EXPECT_EQ(law.size(), 2);
}

TEST(Queries, PointsRefuseWhatDoesNotFit) {
  EXPECT_EQ(refusal(PointQueries{}, 2), "points: is empty, needs at least one point");
  EXPECT_EQ(refusal(PointQueries{.points = {{1, 2}, {1}}}, 2),
            "points[1]: has 1 coordinate, the design has dim 2");
  EXPECT_EQ(refusal(PointQueries{.points = {{1, 2}, {1, 3}}}, 2), "");
}

TEST(Queries, FromTheDesignAreItsDrawsForQueries) {
  UniformDesign design{.dim = 3};
  Table table;
  const DesignSampler sampler = design.sampler(table);
  const QuerySet set = DesignQueries{.count = 10, .seed = 4}.generate(3, sampler, table);
  ASSERT_EQ(set.points.size(), 30u);
  ASSERT_EQ(set.rows.size(), 10u);
  float x[4];
  draw_design_point(sampler, table.rounded(), 3, 4, Purpose::queries, Purpose::queries_choice, 0, 7,
                    x);
  for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(set.points[21 + j], static_cast<double>(x[j]));

  const QuerySet fewer = DesignQueries{.count = 4, .seed = 4}.generate(3, sampler, table);
  EXPECT_TRUE(std::equal(fewer.points.begin(), fewer.points.end(), set.points.begin()));
  const QuerySet other = DesignQueries{.count = 4, .seed = 5}.generate(3, sampler, table);
  EXPECT_NE(other.points, fewer.points);
  // Not the training points of the same seed.
  draw_design_point(sampler, table.rounded(), 3, 4, Purpose::design, Purpose::design_choice, 0, 7,
                    x);
  EXPECT_NE(set.points[21], static_cast<double>(x[0]));
}

TEST(Queries, FromAFileKnowTheirRows) {
  FileDesign design;
  design.rows = {{0.1}, {0.2}, {0.3}};
  Table table;
  const QuerySet set =
      DesignQueries{.count = 50, .seed = 0}.generate(1, design.sampler(table), table);
  for (std::size_t q = 0; q < 50; ++q) {
    EXPECT_EQ(set.points[q], static_cast<double>(static_cast<float>(design.rows[set.rows[q]][0])));
  }
}

}  // namespace
}  // namespace headlab
