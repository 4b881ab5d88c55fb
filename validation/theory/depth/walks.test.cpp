// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/walks.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using nlohmann::json;

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
    Matrices walks;
    for (const json& p : known["inputs"]["P"]) walks.push_back(matrix_from(p));
    const double eps = known["inputs"]["eps"];
    const json& expected = known["expected"];
    const MatrixXd average = averaged_walk(walks);
    for (std::size_t h = 0; h < walks.size(); ++h) {
      EXPECT_EQ(mixing_time({walks[h]}, eps), expected["mixing_time"][h].get<std::uint64_t>());
      EXPECT_TRUE(
          within(largest_hitting_time(walks[h]), expected["hitting"][h], known["tolerance"]));
    }
    EXPECT_EQ(mixing_time({average}, eps), expected["mixing_time_average"].get<std::uint64_t>());
    EXPECT_EQ(mixing_time(walks, eps), expected["mixing_time_alternating"].get<std::uint64_t>());
    EXPECT_TRUE(
        within(largest_hitting_time(average), expected["hitting_average"], known["tolerance"]));
    // Negative controls: other weights, a larger distance.
    std::vector<double> weights(walks.size(), 1.0 / static_cast<double>(walks.size()));
    weights[0] += 1e-3;
    weights[1] -= 1e-3;
    EXPECT_FALSE(within(largest_hitting_time(averaged_walk(walks, weights)),
                        expected["hitting_average"], known["tolerance"]));
    EXPECT_NE(mixing_time({average}, 1.5), expected["mixing_time_average"].get<std::uint64_t>());
    // Weights at a vertex are the head itself, so the best are never slower than the best head.
    std::vector<double> vertex(walks.size(), 0);
    vertex[0] = 1;
    EXPECT_EQ(averaged_walk(walks, vertex), walks[0]);
  }
}

TEST(Walks, HittingTimesKeepTheDigitsOfSlowWalks) {
  EXPECT_NEAR(largest_hitting_time(line_walk(5, 0.3)), 5 / 0.3, 1e-12);
  EXPECT_NEAR(largest_hitting_time(line_walk(3, 1e-14)) / 3e14, 1, 1e-2);  // 1 - p is rounded
  // Two nodes that pass to one another and seldom to the sink: I - Q is singular to rounding.
  MatrixXd trap(3, 3);
  const double leak = 0x1p-60;
  trap << 0, 1, 0, 1, 0, leak, 0, 0, 1;
  EXPECT_NEAR(largest_hitting_time(trap) * leak, 2, 1e-12);
}

TEST(Walks, NeverArriveWhereTheSinkIsOutOfReach) {
  MatrixXd stuck = MatrixXd::Identity(3, 3);
  EXPECT_EQ(mixing_time({stuck}, 0.25), std::nullopt);
  EXPECT_EQ(largest_hitting_time(stuck), std::numeric_limits<double>::infinity());
  EXPECT_EQ(mixing_time({line_walk(2, 1e-3)}, 0.25, 100), std::nullopt);
  const MatrixXd one = MatrixXd::Identity(1, 1);
  EXPECT_EQ(mixing_time({one}, 0.25), 0u);
  EXPECT_EQ(largest_hitting_time(one), 0);
}

TEST(Walks, RefuseWhatIsOutOfRange) {
  MatrixXd walk = line_walk(2, 0.5);
  EXPECT_THROW(mixing_time({walk}, 0), InvalidInput);
  EXPECT_THROW(mixing_time({}, 0.1), InvalidInput);
  EXPECT_THROW(averaged_walk({walk, walk}, {0.5, 0.6}), InvalidInput);
  EXPECT_THROW(averaged_walk({walk, walk}, {1.5, -0.5}), InvalidInput);
  EXPECT_THROW(averaged_walk({walk, line_walk(3, 0.5)}), InvalidInput);
  walk(0, 0) = std::nan("");
  EXPECT_THROW(require_walk(walk), InvalidInput);
  walk.row(0) << 0.5, 0.6, 0;
  EXPECT_THROW(require_walk(walk), InvalidInput);
  walk.row(0) << 1, 0, 0;
  walk.row(2) << 1, 0, 0;
  EXPECT_THROW(require_walk(walk), InvalidInput);
}

}  // namespace
}  // namespace headlab
