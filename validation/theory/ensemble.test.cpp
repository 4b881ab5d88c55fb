// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/ensemble.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "engine/run/pilot.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd as_vector(const std::vector<double>& a) {
  return Eigen::Map<const VectorXd>(a.data(), static_cast<Index>(a.size()));
}

MatrixXd random_matrix(Index rows, Index columns, std::mt19937& random) {
  std::normal_distribution<double> normal;
  return MatrixXd::NullaryExpr(rows, columns, [&] { return normal(random); });
}

/// The best weights of sum 1 and no sign below zero among all sets of heads that may be kept.
VectorXd best_of_all_subsets(const MatrixXd& m) {
  const Index heads = m.rows();
  VectorXd best = VectorXd::Zero(heads);
  double least = INFINITY;
  for (int set = 1; set < 1 << heads; ++set) {
    std::vector<Index> kept;
    for (Index h = 0; h < heads; ++h) {
      if ((set >> h & 1) != 0) kept.push_back(h);
    }
    VectorXd a = VectorXd::Zero(heads);
    a(kept) = as_vector(optimal_weights(m(kept, kept)));
    if (a.minCoeff() >= 0 && a.dot(m * a) < least) {
      least = a.dot(m * a);
      best = a;
    }
  }
  return best;
}

TEST(NonnegativeWeights, AreTheBestOfAllSubsets) {
  std::mt19937 random(3);
  int some_dropped = 0;
  for (int i = 0; i < 60; ++i) {
    const Index heads = 2 + i % 5;
    const MatrixXd root = random_matrix(heads, heads, random) + MatrixXd::Constant(heads, heads, 1);
    const MatrixXd m = root * root.transpose() + 0.05 * MatrixXd::Identity(heads, heads);
    const VectorXd a = as_vector(nonnegative_weights(m));
    EXPECT_GE(a.minCoeff(), 0);
    EXPECT_NEAR(a.sum(), 1, 1e-14);
    EXPECT_LE((a - best_of_all_subsets(m)).cwiseAbs().maxCoeff(), 1e-10) << m;
    if (as_vector(optimal_weights(m)).minCoeff() < 0) ++some_dropped;
  }
  EXPECT_GT(some_dropped, 20);  // the control: otherwise the free optimum would have done
}

TEST(NonnegativeWeights, KeepHeadsOfVeryDifferentError) {
  const MatrixXd m = (MatrixXd(3, 3) << 1e-8, 0, 1.5e-4, 0, 1e4, 0, 1.5e-4, 0, 4).finished();
  const VectorXd a = as_vector(nonnegative_weights(m));
  EXPECT_NEAR(a(0), 1, 1e-11);
  EXPECT_NEAR(a(1) / 1e-12, 1, 1e-9);
  EXPECT_EQ(a(2), 0);
}

TEST(UnconstrainedWeights, LeaveNoGradient) {
  std::mt19937 random(5);
  const MatrixXd root = random_matrix(4, 4, random);
  const MatrixXd covariance = root * root.transpose();
  const VectorXd e = random_matrix(4, 1, random);
  const double m = 1.7;
  const VectorXd a = as_vector(unconstrained_weights(covariance + e * e.transpose(), m * e));
  auto error = [&](const VectorXd& b) { return std::pow(b.dot(e) - m, 2) + b.dot(covariance * b); };
  for (Index h = 0; h < 4; ++h) {
    EXPECT_LT(error(a), error(a + 1e-4 * VectorXd::Unit(4, h)));
    EXPECT_LT(error(a), error(a - 1e-4 * VectorXd::Unit(4, h)));
  }
  // Shrinks: with the sum fixed to one it does worse.
  EXPECT_LT(error(a),
            error(as_vector(optimal_weights(
                covariance + (e.array() - m).matrix() * (e.array() - m).matrix().transpose()))));
  EXPECT_THROW(unconstrained_weights(MatrixXd::Ones(2, 2), VectorXd::Ones(2)), ParameterError);
}

TEST(Optimism, IsWhatFittingWeightsShows) {
  // Heads with independent standard normal errors: the best weights are 1/H with error 1/H.
  constexpr int heads = 3, replicates = 12, scenarios = 6000;
  std::mt19937 random(11);
  double in_sample = 0, in_square = 0, fresh = 0, fresh_square = 0;
  for (int i = 0; i < scenarios; ++i) {
    const MatrixXd errors = random_matrix(replicates, heads, random);
    const MatrixXd centred = errors.rowwise() - errors.colwise().mean();
    const MatrixXd m = centred.transpose() * centred / (replicates - 1);
    const VectorXd a = as_vector(optimal_weights(m));
    const double inside = heads * a.dot(m * a);
    const double outside = heads * a.squaredNorm();
    in_sample += inside / scenarios;
    in_square += inside * inside / scenarios;
    fresh += outside / scenarios;
    fresh_square += outside * outside / scenarios;
  }
  const double in_error = std::sqrt((in_square - in_sample * in_sample) / scenarios);
  const double fresh_error = std::sqrt((fresh_square - fresh * fresh) / scenarios);
  EXPECT_LE(std::abs(in_sample - in_sample_optimism(replicates, heads)), 4 * in_error);
  EXPECT_LE(std::abs(fresh - fresh_sample_cost(replicates, heads)), 4 * fresh_error);
  // Negative controls: one head more, and no cost at all.
  EXPECT_GT(std::abs(in_sample - in_sample_optimism(replicates, heads + 1)), 4 * in_error);
  EXPECT_GT(std::abs(in_sample - 1), 4 * in_error);
  EXPECT_GT(std::abs(fresh - fresh_sample_cost(replicates, heads + 1)), 4 * fresh_error);
  EXPECT_EQ(fresh_sample_cost(4, 3), INFINITY);
}

TEST(EnsembleVariance, FallsToItsFloor) {
  EXPECT_EQ(ensemble_variance(2, 0.3, 1), 2);
  EXPECT_NEAR(ensemble_variance(2, 0.3, 4), 2 * (0.25 + 0.75 * 0.3), 1e-15);
  EXPECT_NEAR(ensemble_variance(2, 0.3, 1000000000), 0.6, 1e-8);
}

TEST(OutputProjection, IsASumOverHeads) {
  std::mt19937 random(7);
  constexpr Index heads = 3, v = 2, o = 4;
  const MatrixXd root = random_matrix(heads, heads, random);
  const MatrixXd c = root * root.transpose();
  const MatrixXd noise_root = random_matrix(v, v, random);
  const MatrixXd noise = noise_root * noise_root.transpose();
  const MatrixXd a = random_matrix(o, heads * v, random);
  const VectorXd mean = random_matrix(heads * v, 1, random);
  const VectorXd target = random_matrix(o, 1, random);
  VectorXd expected_output = VectorXd::Zero(o);
  double variance = 0, own = 0;
  for (Index h = 0; h < heads; ++h) {
    const MatrixXd a_h = a.middleCols(h * v, v);
    expected_output += a_h * mean.segment(h * v, v);
    for (Index l = 0; l < heads; ++l) {
      const double term = c(h, l) * (a_h * noise * a.middleCols(l * v, v).transpose()).trace();
      variance += term;
      if (h == l) own += term;
    }
  }
  const double expected = (expected_output - target).squaredNorm() + variance;
  EXPECT_NEAR(output_projection_error(a, mean, stacked_noise_covariance(c, noise), target),
              expected, 1e-12 * expected);
  // Negative control: heads taken for uncorrelated.
  EXPECT_GT(std::abs(expected - ((expected_output - target).squaredNorm() + own)), 1e-6 * expected);
}

TEST(OutputProjection, ForgetsCorrelationBetweenOrthogonalOutputs) {
  MatrixXd a = MatrixXd::Zero(2, 2);  // two heads of one output each, written to two places
  a(0, 0) = 0.7;
  a(1, 1) = -0.4;
  const VectorXd zero = VectorXd::Zero(2);
  const MatrixXd apart = (MatrixXd(2, 2) << 1, 0, 0, 2).finished();
  const MatrixXd together = (MatrixXd(2, 2) << 1, 1.3, 1.3, 2).finished();
  EXPECT_EQ(output_projection_error(a, zero, apart, zero),
            output_projection_error(a, zero, together, zero));
  a(1, 0) = 0.1;
  EXPECT_NE(output_projection_error(a, zero, apart, zero),
            output_projection_error(a, zero, together, zero));
}

}  // namespace
}  // namespace headlab
