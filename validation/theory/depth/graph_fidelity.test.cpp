// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/graph_fidelity.h"

#include <cstddef>
#include <vector>

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

bool counts_agree(const FidelityCount& count, const json& expected) {
  return count.graphs == expected["graphs"] && count.pairs == expected["pairs"] &&
         count.average_above_both == expected["average_above_both"] &&
         count.average_below_both == expected["average_below_both"];
}

TEST(GraphFidelity, CensusAgreesWithTheKnownAnswer) {
  const json known = depth_cases("fidelity_census").at(0);
  const json& expected = known["expected"];
  const FidelityCensus census = fidelity_census(known["inputs"]["n"], known["inputs"]["horizon"]);
  const char* earlier = "every_node_but_the_first_has_an_earlier_neighbour";
  EXPECT_TRUE(counts_agree(census.all, expected["all"]));
  EXPECT_TRUE(counts_agree(census.has_earlier_neighbour, expected[earlier]));
  EXPECT_TRUE(counts_agree(census.reaches_sink, expected["every_node_reaches_the_sink"]));
  EXPECT_TRUE(counts_agree(census.both, expected["both"]));
  // Ties are ties.
  EXPECT_LE(census.largest_tie, 1e-14);
  EXPECT_GE(census.smallest_difference, 1e-4);
  // Negative controls.
  EXPECT_FALSE(counts_agree(census.reaches_sink, expected[earlier]));
  EXPECT_FALSE(counts_agree(fidelity_census(4, 2).all, expected["all"]));
}

TEST(GraphFidelity, OfALineIsACentralBinomial) {
  for (const json& known : depth_cases("line_fidelity")) {
    const int n = known["inputs"]["n"];
    const double expected = known["expected"]["min_fidelity"];
    EXPECT_TRUE(within(line_minimax_fidelity(n), expected, known["tolerance"]));
    GraphEdges line;
    for (int i = 0; i + 1 < n; ++i) line.emplace_back(i, i + 1);
    EXPECT_NEAR(sink_fidelities(graph_diffusion(n, line), 2 * n).minCoeff(), expected, 1e-14);
    EXPECT_FALSE(within(line_minimax_fidelity(n + 1), expected, known["tolerance"]));
  }
}

TEST(GraphFidelity, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(graph_diffusion(1, {}), InvalidInput);
  EXPECT_THROW(graph_diffusion(3, {{1, 1}}), InvalidInput);
  EXPECT_THROW(graph_diffusion(3, {{2, 3}}), InvalidInput);
  EXPECT_THROW(graph_diffusion(3, {{-1, 2}}), InvalidInput);
  EXPECT_THROW(sink_fidelities(MatrixXd::Ones(2, 2), 3), InvalidInput);
  EXPECT_THROW(sink_fidelities(MatrixXd::Identity(2, 2), 0), InvalidInput);
  EXPECT_THROW(fidelity_census(6, 10), InvalidInput);
  EXPECT_THROW(line_minimax_fidelity(1), InvalidInput);
  EXPECT_THROW(reach_sink(0, {}), InvalidInput);
}

}  // namespace
}  // namespace headlab
