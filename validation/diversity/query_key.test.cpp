// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/query_key.h"

#include <cmath>
#include <random>
#include <stdexcept>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "validation/diversity/indices.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Matrices = std::vector<MatrixXd>;

Matrices random_matrices(int heads, int d, int k, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Matrices out;
  for (int h = 0; h < heads; ++h) {
    out.push_back(MatrixXd::NullaryExpr(d, k, [&] { return normal(random); }));
  }
  return out;
}

Matrices orthonormal(Matrices matrices) {
  for (MatrixXd& w : matrices) {
    const Eigen::HouseholderQR<MatrixXd> qr(w);
    w = qr.householderQ() * MatrixXd::Identity(w.rows(), w.cols());
  }
  return matrices;
}

/// log E rho and E log rho from the determinant of d dimensions.
std::pair<double, double> plain(const MatrixXd& difference, double t) {
  const auto d = difference.rows();
  const MatrixXd sum = MatrixXd::Identity(d, d) + difference.transpose() * difference / (t * t);
  return {-0.5 * std::log(sum.determinant()), -difference.squaredNorm() / (2 * t * t)};
}

TEST(QueryKey, IsTheDeterminantOfTheDefinition) {
  for (const auto& [d, k] : {std::pair(9, 2), {9, 4}, {5, 4}, {6, 1}, {4, 4}}) {
    const Matrices q = random_matrices(4, d, k, 1), w = random_matrices(4, d, k, 2);
    for (const double t : {0.5, 2.0, 20.0}) {
      const auto pairs = query_key_correlations(q, w, t);
      ASSERT_EQ(pairs.size(), 6u);
      std::size_t pair = 0;
      for (std::size_t l = 0; l < 4; ++l) {
        for (std::size_t h = l + 1; h < 4; ++h, ++pair) {
          const MatrixXd difference = w[h] * q[h].transpose() - w[l] * q[l].transpose();
          const auto [log_mean, mean_log] = plain(difference, t);
          EXPECT_NEAR(pairs[pair].log_mean, log_mean, 1e-12 * (1 - log_mean));
          EXPECT_NEAR(pairs[pair].mean, std::exp(log_mean), 1e-12);
          EXPECT_NEAR(pairs[pair].mean_log, mean_log, 1e-12 * (1 - mean_log));
          // Control: the sum of the two matrices in place of their difference.
          const auto wrong = plain(w[h] * q[h].transpose() + w[l] * q[l].transpose(), t);
          EXPECT_GT(std::abs(wrong.first - log_mean), 1e-6);
        }
      }
    }
  }
}

/// With one projection for queries and keys it is the product over principal angles.
TEST(QueryKey, OfFramesIsTheProductOverAngles) {
  const Matrices frames = orthonormal(random_matrices(3, 8, 3, 3));
  const auto pairs = query_key_correlations(frames, frames, 1.7);
  EXPECT_NEAR(pairs[1].mean, 1 - *subspace_indices({frames[0], frames[2]}, {}, 1.7)[3].value,
              1e-14);
  EXPECT_GT(std::abs(pairs[0].mean - pairs[1].mean), 1e-3);
}

TEST(QueryKey, SimulationAgrees) {
  const Matrices q = random_matrices(2, 4, 2, 4), w = random_matrices(2, 4, 2, 5);
  const double t = 3;
  const auto pair = query_key_correlations(q, w, t)[0];
  const MatrixXd difference = w[0] * q[0].transpose() - w[1] * q[1].transpose();
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  constexpr int count = 40000;
  double sum = 0, squares = 0, logs = 0, log_squares = 0;
  for (int i = 0; i < count; ++i) {
    const Eigen::VectorXd x = Eigen::VectorXd::NullaryExpr(4, [&] { return normal(random); });
    const double log_rho = -(difference * x).squaredNorm() / (2 * t * t);
    sum += std::exp(log_rho);
    squares += std::exp(2 * log_rho);
    logs += log_rho;
    log_squares += log_rho * log_rho;
  }
  const auto z = [](double total, double total_squares, double expected) {
    const double mean = total / count;
    return std::abs(mean - expected) / std::sqrt((total_squares / count - mean * mean) / count);
  };
  // P(|z| > 4.5) = 7e-6.
  EXPECT_LE(z(sum, squares, pair.mean), 4.5);
  EXPECT_LE(z(logs, log_squares, pair.mean_log), 4.5);
  EXPECT_GT(z(sum, squares, std::exp(pair.mean_log)), 4.5);
}

TEST(QueryKey, EqualHeadsAreFullyCorrelated) {
  Matrices q = random_matrices(1, 6, 3, 7), w = random_matrices(1, 6, 3, 8);
  q.push_back(q[0]);
  w.push_back(w[0]);
  const auto pair = query_key_correlations(q, w, 2)[0];
  EXPECT_NEAR(pair.mean, 1, 1e-13);
  EXPECT_NEAR(pair.mean_log, 0, 1e-13);
  // The same products from another basis.
  const MatrixXd basis = random_matrices(1, 3, 3, 9)[0];
  q[1] = q[0] * basis;
  w[1] = w[0] * basis.inverse().transpose();
  EXPECT_NEAR(query_key_correlations(q, w, 2)[0].mean, 1, 1e-12);
  w[1] *= 1.01;
  EXPECT_LT(query_key_correlations(q, w, 2)[0].mean, 0.9999);
}

TEST(QueryKey, FromSingularValuesAndAngles) {
  const Matrices q = random_matrices(2, 9, 3, 10), w = random_matrices(2, 9, 3, 11);
  Matrices u, v;
  std::vector<Eigen::VectorXd> s;
  for (std::size_t h = 0; h < 2; ++h) {
    const Eigen::JacobiSVD<MatrixXd> svd(w[h] * q[h].transpose(),
                                         Eigen::ComputeThinU | Eigen::ComputeThinV);
    v.push_back(svd.matrixU().leftCols(3));
    u.push_back(svd.matrixV().leftCols(3));
    s.push_back(query_key_singular_values(q[h], w[h]));
    EXPECT_LE((s[h] - svd.singularValues().head(3)).norm(), 1e-12);
  }
  const double log_mean = query_key_correlations(q, w, 1.5)[0].log_mean;
  const auto of = [&](const MatrixXd& of_u, const MatrixXd& of_v) {
    return log_query_key_correlation(s[0], s[1], of_u, of_v, 1.5);
  };
  EXPECT_NEAR(of(u[0].transpose() * u[1], v[0].transpose() * v[1]), log_mean, 1e-11);
  EXPECT_GT(std::abs(of(u[0].transpose() * u[1], MatrixXd::Identity(3, 3)) - log_mean), 1e-6);
}

TEST(QueryKey, RefusesWhatIsNoPair) {
  const Matrices two = random_matrices(2, 4, 2, 12), three = random_matrices(3, 4, 2, 12);
  Matrices ragged = two, huge = two;
  ragged[1] = ragged[1].leftCols(1).eval();
  huge[0] *= 1e200;
  EXPECT_NO_THROW(query_key_correlations(two, two, 1));
  EXPECT_THROW(query_key_correlations({}, {}, 1), std::invalid_argument);
  EXPECT_THROW(query_key_correlations(two, three, 1), std::invalid_argument);
  EXPECT_THROW(query_key_correlations(two, ragged, 1), std::invalid_argument);
  EXPECT_THROW(query_key_correlations(huge, huge, 1), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
