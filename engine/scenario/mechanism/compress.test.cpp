// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/mechanism/compress.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "engine/run/run.h"
#include "engine/scenario/mechanism/low_rank.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/subspaces.h"
#include "engine/scenario/testing/known_world.h"
#include "engine/testing/refusal.h"
#include "kernels/decompositions.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using nlohmann::json;
using Sets = std::vector<std::string>;

/// Two heads of dimension 2 on one subspace, whose queries are projected apart.
Condition compressed(const Sets& sets) {
  return parse_scenario(
             World{.n = "30",
                   .design = "{ law = 'normal', dim = 3, covariance = [[1, 0.5, 0], [0.5, 2, 0], "
                             "[0, 0, 1]] }",
                   .regression =
                       "{ law = 'additive', amplitude = [1, 1, 0], frequency = [0.5, 1, 1] }",
                   .noise = "{ law = 'normal', sd = 0.5 }",
                   .heads = "count = 2\ndim = 2\nsubspaces = { law = 'explicit', "
                            "matrices = [[[1, 0], [0, 1], [0, 0]], [[1, 0], [0, 1], [0, 0]]], "
                            "query_matrices = [[[3, 0], [0, 0.7], [0, 0]], "
                            "[[1, 0.2], [0, 1], [0.3, 0]]] }",
                   .kernel = "{ law = 'softmax', temperature = 1.5 }",
                   .points = "[[0.4, 1.2, 0], [-1, 0.3, 0.5], [0.2, 0.1, 2]]",
                   .run = "seed = 5\nreplicates = 64"}
                 .text(),
             "compressed.toml", sets)
      .conditions.at(0);
}

std::string compress(const std::string& parameters) {
  return "heads.mechanism.compress={ " + parameters + " }";
}

/// A B^T of a head, from projections before and after, of which W_K has orthonormal columns.
MatrixXd map_of(const Condition& after, int head) {
  const Subspaces plain = make_subspaces(compressed({}));
  const Subspaces made = make_subspaces(after);
  const auto h = static_cast<std::size_t>(head);
  const MatrixXd w_k = to_projections(plain)[h], w_q = to_query_matrices(plain)[h];
  // W_Q B solves for B.
  const MatrixXd b =
      Cholesky(w_q.transpose() * w_q).solve(MatrixXd(w_q.transpose() * to_query_matrices(made)[h]));
  return w_k.transpose() * to_projections(made)[h] * b.transpose();
}

double distance_of(const MatrixXd& a, const MatrixXd& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

std::string refused(const Sets& sets) {
  return refusal_line([&] { compressed(sets); });
}

TEST(Compress, FitsToTheMomentsOfANormalDesign) {
  const MatrixXd s{{1, 0.5, 0}, {0.5, 2, 0}, {0, 0, 1}};
  const Subspaces plain = make_subspaces(compressed({}));
  for (const std::string by : {"kq_svd", "k_svd", "joint"}) {
    const Condition condition = compressed({compress("rank = 1, by = '" + by + "'")});
    for (int h = 0; h < 2; ++h) {
      const auto head = static_cast<std::size_t>(h);
      const MatrixXd w_k = to_projections(plain)[head], w_q = to_query_matrices(plain)[head];
      const LowRankMaps maps =
          low_rank_maps(*low_rank_method(by), root_of_moment(w_k.transpose() * s * w_k),
                        root_of_moment(w_q.transpose() * s * w_q), 1);
      EXPECT_LE(distance_of(map_of(condition, h), maps.keys * maps.queries.transpose()), 1e-12);
    }
  }
  // A mean counts, unless the keys are centred; queries keep it.
  const std::string mean = "data.design.mean=[2, 0, 0]";
  const auto with_mean = [&](const std::string& more) {
    return map_of(compressed({compress("by = 'k_svd', rank = 1" + more), mean}), 0);
  };
  const MatrixXd without = map_of(compressed({compress("by = 'k_svd', rank = 1")}), 0);
  EXPECT_GT(distance_of(with_mean(""), without), 0.1);
  EXPECT_LE(distance_of(with_mean(", centre = true"), without), 1e-12);
}

TEST(Compress, FitsToDrawnPointsOfOtherDesigns) {
  // A mixture of one component is the normal design, known by its draws alone.
  const std::string mixture =
      "data.design={ law = 'mixture', weights = [1], means = [[1, 0, 2]], covariances = "
      "[[[1, 0.5, 0], [0.5, 2, 0], [0, 0, 1]]] }";
  const std::string normal = "data.design.mean=[1, 0, 2]";
  // Moments of N points are off by some 1/sqrt(N).
  const double error = 8 / std::sqrt(65536.0);
  for (const std::string more : {"", ", centre = true"}) {
    const std::string given = "by = 'kq_svd', rank = 1" + more;
    const MatrixXd exact = map_of(compressed({compress(given), normal}), 1);
    const auto drawn = [&](const std::string& draws) {
      return map_of(compressed({mixture, compress(given + draws)}), 1);
    };
    EXPECT_LE(distance_of(drawn(""), exact), error);
    EXPECT_GT(distance_of(drawn(", points = 20"), exact), error);
    EXPECT_EQ(distance_of(drawn(""), drawn("")), 0);
    EXPECT_GT(distance_of(drawn(", seed = 1"), drawn("")), 1e-6);
    // Points are those of the stage alone: the run's seed and its replicates change nothing.
    EXPECT_EQ(
        distance_of(map_of(compressed({mixture, compress(given), "run.seed=9"}), 1), drawn("")), 0);
  }
}

TEST(Compress, FitsToTheQueriesOfTheScenario) {
  MatrixXd x{{0.4, 1.2, 0}, {-1, 0.3, 0.5}, {0.2, 0.1, 2}};
  const MatrixXd s{{1, 0.5, 0}, {0.5, 2, 0}, {0, 0, 1}};
  const Condition condition =
      compressed({compress("by = 'kq_svd', rank = 1, queries = 'scenario'")});
  const Subspaces plain = make_subspaces(compressed({}));
  const MatrixXd w_k = to_projections(plain)[1], w_q = to_query_matrices(plain)[1];
  const LowRankMaps maps = low_rank_maps(
      LowRankMethod::kq_svd, root_of_moment(w_k.transpose() * s * w_k), root_of_rows(x * w_q), 1);
  EXPECT_LE(distance_of(map_of(condition, 1), maps.keys * maps.queries.transpose()), 1e-12);
  EXPECT_GT(distance_of(map_of(condition, 1),
                        map_of(compressed({compress("by = 'kq_svd', rank = 1")}), 1)),
            0.01);
}

TEST(Compress, KeepsThePlainHeadBitForBit) {
  const Condition plain = compressed({});
  const Plan one = make_plan(plain);
  for (const char* parameters : {"by = 'kq_svd', rank = 2", "by = 'k_svd', rank = [7, 2]"}) {
    const Plan two = make_plan(compressed({compress(parameters)}));
    EXPECT_EQ(one.projections, two.projections);
    EXPECT_EQ(one.query_projections, two.query_projections);
    EXPECT_EQ(one.k, two.k);
  }
  // Heads that project queries as keys: the one that is not compressed keeps its bits.
  const std::string alike = "heads.subspaces={ law = 'haar', seed = 3 }";
  const auto simulate = [&](const Sets& sets) {
    Sets all = {alike, "heads.count=2"};
    all.insert(all.end(), sets.begin(), sets.end());
    const Condition condition = compressed(all);
    return run({.file = "", .text = "", .sets = {}, .swept = {}, .conditions = {condition}}, {})
        .conditions.at(0)
        .estimates.queries.at(0);
  };
  const auto whole = simulate({});
  const auto part = simulate({compress("by = 'kq_svd', rank = [2, 1]")});
  EXPECT_EQ(whole.head_bias[0].value, part.head_bias[0].value);
  EXPECT_EQ(whole.head_covariance[0].value, part.head_covariance[0].value);
  EXPECT_NE(whole.head_bias[1].value, part.head_bias[1].value);
  EXPECT_EQ(whole.head_bias[1].value,
            simulate({compress("by = 'joint', rank = 2")}).head_bias[1].value);
}

TEST(Compress, ComesAfterTransformAndTakesFewerColumns) {
  const Condition condition = compressed(
      {"heads.mechanism={ transform = { matrix = [[2, 0], [0, 0.1]] }, compress = { by = 'k_svd', "
       "rank = 1 } }"});
  const Plan plan = make_plan(condition);
  EXPECT_EQ(plan.k, 1);
  EXPECT_EQ(plan.projections.size(), 2u * 3u);
  // The first axis is the longer one after the transformation, the second before it.
  EXPECT_GT(std::abs(plan.projections[0]), 1.9);
  EXPECT_GT(std::abs(make_plan(compressed({compress("by = 'k_svd', rank = 1")})).projections[1]),
            0.8);
  // One rank a head: the smaller has a column of zeros.
  const Plan two = make_plan(compressed({compress("by = 'kq_svd', rank = [2, 1]")}));
  EXPECT_EQ(two.k, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(two.projections[6 + 2 * i + 1], 0);
    EXPECT_EQ(two.query_projections[6 + 2 * i + 1], 0);
  }
}

TEST(Compress, IsDrawnAgainWithItsHeads) {
  const std::string again = "heads.subspaces={ law = 'haar', redraw = true }";
  const Condition condition = compressed({again, compress("by = 'kq_svd', rank = 1")});
  Plan plan = make_plan(condition);
  const Plan first = plan;
  set_draw(plan, condition, 1);
  EXPECT_NE(plan.query_projections, first.query_projections);
  EXPECT_NE(plan.projections, first.projections);
  set_draw(plan, condition, 0);
  EXPECT_EQ(plan.query_projections, first.query_projections);
  const auto estimates = [&](const char* backend) {
    return run({.file = "", .text = "", .sets = {}, .swept = {}, .conditions = {condition}},
               {.backend = backend})
        .conditions.at(0)
        .estimates.mse.value;
  };
  EXPECT_NEAR(estimates("cpu"), estimates("reference"), 1e-4 * estimates("reference"));
}

TEST(Compress, RefusesInOneLine) {
  const auto expect = [](const Sets& sets, const std::string& part) {
    const std::string line = refused(sets);
    EXPECT_NE(line.find(part), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  };
  const std::string at = "heads.mechanism.compress";
  expect({compress("by = 'kq', rank = 1")}, at + ".by: is \"kq\" - allowed: kq_svd, k_svd, joint");
  expect({compress("by = 'kq_svd'")}, at + ".rank: is missing");
  expect({compress("by = 'kq_svd', rank = 0")}, at + ".rank: is 0, must be in [1");
  expect({compress("by = 'kq_svd', rank = [1, 1, 1]")}, at + ".rank: has 3 elements");
  expect({compress("by = 'kq_svd', rank = 1, queries = 'all'")}, at + ".queries: is \"all\"");
  expect({compress("by = 'kq_svd', rank = 1, points = 1")}, at + ".points: is 1, must be in [2");
  expect({compress("by = 'kq_svd', rank = 1"), "heads.kernel={ law = 'gaussian', bandwidth = 1 }",
          "heads.subspaces={ law = 'haar' }"},
         at + ": needs the kernel \"softmax\"");
  expect({compress("by = 'kq_svd', rank = 1, queries = 'scenario'"), "queries.points=[[1, 0, 0]]"},
         at + ".queries: is \"scenario\" with 1 query, which rank 1 fits exactly");
  expect({compress("by = 'kq_svd', rank = 1, queries = 'scenario'"),
          "queries={ law = 'design', count = 4, redraw = true }"},
         at + ".queries: is \"scenario\", but queries are drawn again");
  // N(0, I) and projections without a scale: every subspace is as good.
  expect({compress("by = 'kq_svd', rank = 1"), "data.design={ law = 'normal', dim = 3 }",
          "heads.subspaces={ law = 'haar' }"},
         at + ".rank: leaves open what head 0 keeps: its singular values 1 and 2 agree");
  expect({compress("by = 'k_svd', rank = 1"), "data.design={ law = 'normal', dim = 3 }"},
         "head 0 keeps");
  // The controls: there KQ-SVD sees the query matrices, and two queries are more than one rank.
  EXPECT_EQ(
      refused({compress("by = 'kq_svd', rank = 1"), "data.design={ law = 'normal', dim = 3 }"}),
      "accepted");
  EXPECT_EQ(refused({compress("by = 'kq_svd', rank = [1, 2], queries = 'scenario'"),
                     "queries.points=[[1, 0, 0], [1, 2, 1]]"}),
            "accepted");
}

TEST(Compress, FailsInTheDrawWhoseHeadsTie) {
  // Heads on two of three coordinates, of which the last two are alike.
  const Condition condition =
      compressed({"heads.subspaces={ law = 'coordinates', redraw = true }",
                  "data.design.covariance=[[3, 0, 0], [0, 1, 0], [0, 0, 1]]", "heads.count=1",
                  compress("by = 'kq_svd', rank = 1")});
  Plan plan = make_plan(condition);
  std::string line;
  int draws = 0;
  for (std::uint64_t draw = 0; draw < 40; ++draw) {
    try {
      set_draw(plan, condition, draw);
      ++draws;
    } catch (const RunFailed& error) {
      line = error.what();
    }
  }
  EXPECT_NE(line.find("heads.mechanism.compress.rank: in draw "), std::string::npos) << line;
  EXPECT_GT(draws, 10);
}

/// E (f' - f)^2 of two heads on one subspace, of which the second is compressed.
double squared_distance(const QueryErrorTerms<Estimate>& at) {
  const auto& covariance = at.head_covariance;
  const double bias = at.head_bias[1].value - at.head_bias[0].value;
  return bias * bias + covariance[0].value + covariance[3].value - 2 * covariance[1].value;
}

TEST(Compress, SimulatesTheKnownFidelity) {
  std::vector<double> distances;
  for (const json& known : test::known_cases("mechanisms", "fidelity")) {
    const auto scenario = [&](const json& rank) {
      json given = known["scenario"];
      given["mechanism"]["compress"]["rank"] = rank;
      World world = test::known_world(given);
      world.design =
          "{ law = \"normal\", dim = 2, covariance = " + given["covariance"].dump() + " }";
      world.run = "seed = 5\nreplicates = 20000";
      return parse_scenario(world.text(), "fidelity.toml");
    };
    const auto found = run(scenario(known["scenario"]["mechanism"]["compress"]["rank"]), {})
                           .conditions.at(0)
                           .estimates.queries.at(0);
    const json& expected = known["expected"];
    double squares = 0;
    const auto compare = [&](const Estimate& figure, const json& exact) {
      const double z = (figure.value - exact.get<double>()) / figure.mcse;
      EXPECT_LT(std::abs(z), 4.5) << exact;
      squares += z * z;
    };
    for (std::size_t h = 0; h < 2; ++h) {
      compare(found.head_bias[h], expected["bias"][h]);
      for (std::size_t l = h; l < 2; ++l) {
        compare(found.head_covariance[2 * h + l], expected["covariance"][h][l]);
      }
    }
    EXPECT_LT(std::sqrt(squares / 5), 1.8);
    distances.push_back(squared_distance(found));
    EXPECT_NEAR(distances.back() / expected["squared_distance_of_the_heads"].get<double>(), 1, 0.1);
    // The control: heads of full rank do not differ.
    const auto plain = run(scenario(2), {}).conditions.at(0).estimates.queries.at(0);
    EXPECT_EQ(squared_distance(plain), 0);
  }
  ASSERT_EQ(distances.size(), 2u);
  // KQ-SVD, which has the smaller score error, is the farther.
  EXPECT_GT(distances[0], 10 * distances[1]);
}

}  // namespace
}  // namespace headlab
