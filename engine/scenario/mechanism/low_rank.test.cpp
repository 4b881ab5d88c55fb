// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/mechanism/low_rank.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using nlohmann::json;

MatrixXd matrix_of(const json& rows) {
  MatrixXd m(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(rows[0].size()));
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    for (Eigen::Index j = 0; j < m.cols(); ++j) {
      m(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  return m;
}

MatrixXd centred(const MatrixXd& rows) {
  return rows.rowwise() - rows.colwise().mean();
}

MatrixXd product(const LowRankMaps& maps) {
  return maps.keys * maps.queries.transpose();
}

double distance(const MatrixXd& a, const MatrixXd& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

/// Independent normals [rows][columns].
MatrixXd normals(Eigen::Index rows, Eigen::Index columns, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  return MatrixXd::NullaryExpr(rows, columns, [&] { return normal(engine); });
}

/// A query's softmax weights of keys [n][k].
ArrayXd weights(const MatrixXd& keys, const VectorXd& query) {
  const ArrayXd logits = keys * query;
  const ArrayXd w = (logits - logits.maxCoeff()).exp();
  return w / w.sum();
}

double total_variation(const ArrayXd& a, const ArrayXd& b) {
  return (a - b).abs().sum() / 2;
}

TEST(LowRank, HasTheKnownMapsOfMatrices) {
  const auto all = test::known_cases("mechanisms", "low_rank_matrices");
  EXPECT_EQ(all.size(), 2u);
  for (const json& known : all) {
    const json& expected = known["expected"];
    const double tolerance = known["tolerance"];
    const MatrixXd k = matrix_of(known["input"]["keys"]), q = matrix_of(known["input"]["queries"]);
    const int rank = known["input"]["rank"];
    const MomentRoot keys = root_of_rows(k), queries = root_of_rows(q);
    const LowRankMaps best = low_rank_maps(LowRankMethod::kq_svd, keys, queries, rank);
    for (Eigen::Index j = 0; j < best.spectrum.size(); ++j) {
      EXPECT_NEAR(best.spectrum(j), expected["singular_values"][static_cast<std::size_t>(j)],
                  tolerance);
    }
    EXPECT_LE(distance(product(best), matrix_of(expected["kq_svd_A_times_B_transposed"])),
              tolerance);
    const LowRankMaps about_mean =
        low_rank_maps(LowRankMethod::kq_svd, root_of_rows(centred(k)), queries, rank);
    const MatrixXd known_centred = matrix_of(expected["kq_svd_centred_A_times_B_transposed"]);
    EXPECT_LE(distance(product(about_mean), known_centred), tolerance);
    EXPECT_GT(distance(product(best), known_centred), 1e-3);
    for (const std::string& name : low_rank_methods()) {
      const LowRankMaps maps = low_rank_maps(*low_rank_method(name), keys, queries, rank);
      const double error = squared_score_error(keys, queries, maps.keys, maps.queries);
      EXPECT_NEAR(error, expected["squared_score_error"][name], 300 * tolerance) << name;
      // The error of the scores themselves.
      EXPECT_NEAR((k * q.transpose() - k * product(maps) * q.transpose()).squaredNorm(), error,
                  1e-10 * error);
    }
  }
}

TEST(LowRank, HasTheKnownMapsOfMoments) {
  const auto all = test::known_cases("mechanisms", "low_rank_moments");
  EXPECT_EQ(all.size(), 2u);
  for (const json& known : all) {
    const MomentRoot keys = root_of_moment(matrix_of(known["input"]["key_second_moments"]));
    const MomentRoot queries = root_of_moment(matrix_of(known["input"]["query_second_moments"]));
    const int rank = known["input"]["rank"];
    for (const std::string& name : low_rank_methods()) {
      const json& expected = known["expected"][name];
      const LowRankMaps maps = low_rank_maps(*low_rank_method(name), keys, queries, rank);
      EXPECT_LE(distance(product(maps), matrix_of(expected["A_times_B_transposed"])), 1e-9) << name;
      EXPECT_NEAR(squared_score_error(keys, queries, maps.keys, maps.queries),
                  expected["expected_squared_score_error"], 1e-9)
          << name;
    }
  }
}

TEST(LowRank, ACommonMeanOfKeysTakesTheFirstSingularVector) {
  const auto all = test::known_cases("mechanisms", "low_rank_common_mean");
  ASSERT_EQ(all.size(), 1u);
  const MatrixXd k = matrix_of(all[0]["input"]["keys"]);
  const MatrixXd q = matrix_of(all[0]["input"]["queries"]);
  const auto largest = [&](const MatrixXd& fitted) {
    const MatrixXd map =
        product(low_rank_maps(LowRankMethod::kq_svd, root_of_rows(fitted), root_of_rows(q), 1));
    double found = 0;
    for (Eigen::Index j = 0; j < q.rows(); ++j) {
      const VectorXd query = q.row(j).transpose();
      found = std::max(found, total_variation(weights(k, query), weights(k, map * query)));
    }
    return found;
  };
  const json& expected = all[0]["expected"]["largest_total_variation_of_weights"];
  EXPECT_NEAR(largest(k), expected["not_centred"], 1e-9);
  EXPECT_NEAR(largest(centred(k)), expected["centred"], 1e-9);
}

TEST(LowRank, KqSvdHasTheLeastScoreErrorOfItsRank) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const MatrixXd k = normals(30, 5, 3 * seed), q = normals(20, 5, 3 * seed + 1);
    const MomentRoot keys = root_of_rows(k), queries = root_of_rows(q);
    for (int rank = 1; rank < 5; ++rank) {
      const LowRankMaps best = low_rank_maps(LowRankMethod::kq_svd, keys, queries, rank);
      const double least = squared_score_error(keys, queries, best.keys, best.queries);
      EXPECT_NEAR(least, best.spectrum.tail(5 - rank).squaredNorm(), 1e-9 * least);
      // The dropped part of the keys alone: tr(P' S_K P' S_Q).
      const LowRankMaps of_keys = low_rank_maps(LowRankMethod::k_svd, keys, queries, rank);
      const MatrixXd dropped = MatrixXd::Identity(5, 5) - product(of_keys);
      const double of_k_svd = squared_score_error(keys, queries, of_keys.keys, of_keys.queries);
      EXPECT_NEAR(of_k_svd, (dropped * k.transpose() * k * dropped * q.transpose() * q).trace(),
                  1e-9 * of_k_svd);
      EXPECT_GT(of_k_svd, least);
      const LowRankMaps joint = low_rank_maps(LowRankMethod::joint, keys, queries, rank);
      EXPECT_GT(squared_score_error(keys, queries, joint.keys, joint.queries), least);
      // And any maps nearby.
      const MatrixXd a = best.keys + 0.01 * normals(5, rank, 3 * seed + 2);
      EXPECT_GT(squared_score_error(keys, queries, a, best.queries), least);
    }
  }
}

TEST(LowRank, OnlyKqSvdIsBlindToTheScaleOfKeysAgainstQueries) {
  const MatrixXd k = normals(30, 4, 1), q = normals(20, 4, 2);
  const auto maps = [&](LowRankMethod method, double beta) {
    return product(
        low_rank_maps(method, root_of_rows(beta * k), root_of_rows(MatrixXd(q / beta)), 2));
  };
  for (const double beta : {1e-6, 0.1, 30.0, 1e6}) {
    EXPECT_LE(distance(maps(LowRankMethod::kq_svd, beta), maps(LowRankMethod::kq_svd, 1)), 1e-12);
  }
  EXPECT_GT(distance(maps(LowRankMethod::joint, 30), maps(LowRankMethod::joint, 1)), 0.01);
  // Large keys are all that the joint method sees.
  const MatrixXd of_keys = maps(LowRankMethod::k_svd, 1);
  EXPECT_LE(distance(maps(LowRankMethod::joint, 1e4), of_keys), 1e-6);
  EXPECT_GT(distance(maps(LowRankMethod::joint, 1), of_keys), 0.01);
}

TEST(LowRank, WeightsMoveByNoMoreThanTheirLogits) {
  // If logits move by d_i and e = (max d - min d)/2, then TV(w, w') <= tanh(e/2).
  double nearest = 1;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const MatrixXd k = normals(6, 3, 5 * seed), q = normals(8, 3, 5 * seed + 1);
    const MatrixXd map =
        product(low_rank_maps(LowRankMethod::kq_svd, root_of_rows(k), root_of_rows(q), 2));
    const VectorXd query = q.row(0).transpose();
    const VectorXd moved = k * (map * query) - k * query;
    const double bound = std::tanh((moved.maxCoeff() - moved.minCoeff()) / 4);
    const double found = total_variation(weights(k, query), weights(k, map * query));
    EXPECT_LE(found, bound * (1 + 1e-12));
    nearest = std::min(nearest, 1 - found / bound);
  }
  EXPECT_LT(nearest, 0.5);
  // Attained by two keys, one of which gains what the other loses.
  const double e = 0.7;
  const ArrayXd before = weights(VectorXd{{-e / 2, e / 2}}, VectorXd{{1.0}});
  const ArrayXd after = weights(VectorXd{{e / 2, -e / 2}}, VectorXd{{1.0}});
  EXPECT_NEAR(total_variation(before, after), std::tanh(e / 2), 1e-15);
}

TEST(LowRank, LosesNothingOfWhatIsNotThere) {
  // Keys of rank 2 in 4 dimensions, as those of a smaller head are.
  const MatrixXd k = normals(30, 2, 1) * normals(2, 4, 2), q = normals(20, 4, 3);
  for (const bool of_rows : {true, false}) {
    const auto root = [&](const MatrixXd& m) {
      return of_rows ? root_of_rows(m) : root_of_moment(m.transpose() * m);
    };
    const MomentRoot keys = root(k), queries = root(q);
    EXPECT_EQ((keys.values.array() > 0).count(), 2);
    const double whole = squared_score_error(keys, queries, MatrixXd(4, 0), MatrixXd(4, 0));
    EXPECT_NEAR(whole, (k * q.transpose()).squaredNorm(), 1e-10 * whole);
    for (int rank = 2; rank < 4; ++rank) {
      const LowRankMaps maps = low_rank_maps(LowRankMethod::kq_svd, keys, queries, rank);
      EXPECT_FALSE(is_ambiguous(maps.spectrum, rank));
      EXPECT_LE(squared_score_error(keys, queries, maps.keys, maps.queries), 1e-24 * whole);
    }
  }
}

TEST(LowRank, SaysWhereNoSubspaceIsTheBest) {
  EXPECT_TRUE(is_ambiguous(VectorXd{{2, 1, 1, 0.5}}, 2));
  EXPECT_TRUE(is_ambiguous(VectorXd{{2, 1, 1 - 1e-9, 0.5}}, 2));
  EXPECT_FALSE(is_ambiguous(VectorXd{{2, 1, 1 - 3e-9, 0.5}}, 2));
  EXPECT_FALSE(is_ambiguous(VectorXd{{2, 1, 1, 0.5}}, 1));
  EXPECT_FALSE(is_ambiguous(VectorXd{{2, 1, 1, 0.5}}, 4));
  EXPECT_FALSE(is_ambiguous(VectorXd{{1, 0, 0}}, 2));
}

}  // namespace
}  // namespace headlab
