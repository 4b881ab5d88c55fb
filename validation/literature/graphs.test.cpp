// SPDX-License-Identifier: Apache-2.0
#include "validation/literature/graphs.h"

#include <cmath>
#include <cstddef>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using nlohmann::json;

bool agree(const VectorXd& fidelities, const json& expected, const json& tolerance) {
  bool all = fidelities.size() == static_cast<Eigen::Index>(expected.size());
  for (Eigen::Index j = 0; all && j < fidelities.size(); ++j) {
    all = within(fidelities(j), expected[static_cast<std::size_t>(j)], tolerance);
  }
  return all;
}

TEST(GraphFidelity, AgreesWithTheKnownAnswers) {
  for (const json& known : depth_cases("fidelity")) {
    const int n = known["inputs"]["n"];
    const int horizon = known["inputs"]["horizon"];
    std::vector<MatrixXd> heads;
    for (const json& edges : known["inputs"]["edges"]) {
      heads.push_back(graph_diffusion(n, edges.get<GraphEdges>()));
    }
    const json& expected = known["expected"];
    // Twelve digits are written.
    const json tolerance = {{"relative", 2e-12}, {"absolute", 1e-12}};
    for (std::size_t h = 0; h < heads.size(); ++h) {
      EXPECT_TRUE(agree(sink_fidelities(heads[h], horizon), expected["heads"][h], tolerance));
    }
    const VectorXd average = sink_fidelities((heads[0] + heads[1]) / 2, horizon);
    EXPECT_TRUE(agree(average, expected["average"], tolerance));
    // Negative controls: other weights, a horizon that is too short.
    EXPECT_FALSE(agree(sink_fidelities(0.51 * heads[0] + 0.49 * heads[1], horizon),
                       expected["average"], tolerance));
    EXPECT_FALSE(
        agree(sink_fidelities((heads[0] + heads[1]) / 2, 1), expected["average"], tolerance));
  }
}

TEST(GraphFidelity, CensusAgreesWithTheKnownAnswer) {
  const json known = depth_cases("fidelity_census").at(0);
  const json& expected = known["expected"]["every_node_reaches_the_sink"];
  const auto agrees = [&](const FidelityCount& count) {
    return count.graphs == expected["graphs"] && count.pairs == expected["pairs"] &&
           count.average_above_both == expected["average_above_both"] &&
           count.average_below_both == expected["average_below_both"];
  };
  EXPECT_TRUE(agrees(fidelity_census(known["inputs"]["n"], known["inputs"]["horizon"])));
  // Negative control.
  EXPECT_FALSE(agrees(fidelity_census(4, 2)));
}

/// A line of steps, each taken with one probability.
MatrixXd line_walk(int steps, double speed) {
  MatrixXd walk = MatrixXd::Identity(steps + 1, steps + 1);
  for (int i = 0; i < steps; ++i) {
    walk(i, i) = 1 - speed;
    walk(i, i + 1) = speed;
  }
  return walk;
}

TEST(Walks, AgreeWithTheKnownAnswers) {
  for (const json& known : depth_cases("walk")) {
    const double eps = known["inputs"]["eps"];
    const json& expected = known["expected"];
    const json& walks = known["inputs"]["P"];
    MatrixXd average = 0 * matrix_from(walks[0]);
    for (std::size_t h = 0; h < walks.size(); ++h) {
      const MatrixXd walk = matrix_from(walks[h]);
      EXPECT_EQ(mixing_time(walk, eps), expected["mixing_time"][h].get<std::uint64_t>());
      average += walk / static_cast<double>(walks.size());
    }
    EXPECT_EQ(mixing_time(average, eps), expected["mixing_time_average"].get<std::uint64_t>());
    // Negative control: a larger distance.
    EXPECT_NE(mixing_time(average, 1.5), expected["mixing_time_average"].get<std::uint64_t>());
  }
}

TEST(Walks, NeverArriveWhereTheSinkIsOutOfReach) {
  EXPECT_EQ(mixing_time(MatrixXd::Identity(3, 3), 0.25), std::nullopt);
  EXPECT_EQ(mixing_time(line_walk(2, 1e-3), 0.25, 100), std::nullopt);
  EXPECT_EQ(mixing_time(MatrixXd::Identity(1, 1), 0.25), 0u);
  MatrixXd apart = line_walk(3, 0.5);
  apart.row(1) << 0, 1, 0, 0;
  EXPECT_EQ(reach_last(apart), (std::vector<bool>{false, false, true, true}));
}

TEST(Graphs, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(graph_diffusion(1, {}), InvalidInput);
  EXPECT_THROW(graph_diffusion(3, {{1, 1}}), InvalidInput);
  EXPECT_THROW(graph_diffusion(3, {{2, 3}}), InvalidInput);
  EXPECT_THROW(graph_diffusion(3, {{-1, 2}}), InvalidInput);
  EXPECT_THROW(sink_fidelities(MatrixXd::Ones(2, 2), 3), InvalidInput);
  EXPECT_THROW(sink_fidelities(MatrixXd::Identity(2, 2), 0), InvalidInput);
  EXPECT_THROW(fidelity_census(6, 10), InvalidInput);
  MatrixXd walk = line_walk(2, 0.5);
  EXPECT_THROW(mixing_time(walk, 0), InvalidInput);
  walk(0, 0) = std::nan("");
  EXPECT_THROW(mixing_time(walk, 0.1), InvalidInput);
  walk.row(0) << 0.5, 0.6, 0;
  EXPECT_THROW(mixing_time(walk, 0.1), InvalidInput);
  walk.row(0) << 1, 0, 0;
  walk.row(2) << 1, 0, 0;
  EXPECT_THROW(mixing_time(walk, 0.1), InvalidInput);
}

}  // namespace
}  // namespace headlab
