// SPDX-License-Identifier: Apache-2.0
// Closed forms of heads whose projections are not all frames of one size.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/run.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/testing/known_world.h"
#include "kernels/testing/known_cases.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

using nlohmann::json;

Condition sized_condition(const json& known, const std::string& subspaces, int heads, int k) {
  World world = test::known_world(known);
  world.heads = "count = " + std::to_string(heads) + "\ndim = " + std::to_string(k) +
                "\nsubspaces = " + subspaces;
  world.run = "seed = 5\nreplicates = 20000";
  return world.condition();
}

/// A known case of two heads on one subspace, of which the second is compressed.
Condition known_fidelity(const json& known) {
  World world = test::known_world(known);
  world.design = "{ law = \"normal\", dim = 2, covariance = " + known["covariance"].dump() + " }";
  world.run = "replicates = 8";
  return world.condition();
}

TEST(HeadSizes, OfCompressedHeadsHaveTheKnownFidelity) {
  std::vector<double> distances;
  for (const json& known : test::known_cases("mechanisms", "fidelity")) {
    const json& expected = known["expected"];
    const HeadTheory found =
        compute_theory(known_fidelity(known["scenario"]), TheorySource::exact, 1).heads[0];
    for (Eigen::Index h = 0; h < 2; ++h) {
      const auto row = static_cast<std::size_t>(h);
      EXPECT_NEAR(found.bias(h), expected["bias"][row].get<double>(), 1e-8);
      for (Eigen::Index l = 0; l <= h; ++l) {
        EXPECT_NEAR(found.covariance(h, l),
                    expected["covariance"][row][static_cast<std::size_t>(l)].get<double>(), 1e-8);
      }
    }
    const double bias = found.bias(1) - found.bias(0);
    distances.push_back(bias * bias + found.covariance(0, 0) + found.covariance(1, 1) -
                        2 * found.covariance(1, 0));
    EXPECT_NEAR(distances.back(), expected["squared_distance_of_the_heads"].get<double>(), 1e-7);
  }
  ASSERT_EQ(distances.size(), 2u);
  EXPECT_GT(distances[0], 10 * distances[1]);
}

TEST(HeadSizes, EachHeadHasTheFiguresOfItsSize) {
  for (const char* kernel : {"gaussian", "softmax"}) {
    const json setting = {
        {"n", 60},
        {"W", json::parse("[[[1], [0], [0]]]")},
        {"regression",
         {{"law", "additive"}, {"amplitude", {1, 1, 0.5}}, {"frequency", {1, 0.7, 1}}}},
        {"noise_sd", 0.5},
        {"kernel",
         {{"law", kernel}, {std::string(kernel) == "softmax" ? "temperature" : "bandwidth", 1.2}}},
        {"x", {0.3, -0.5, 0.4}}};
    const Condition blocks = sized_condition(setting, "{ law = \"blocks\", sizes = [1, 2] }", 2, 2);
    const Condition one =
        sized_condition(setting, "{ law = \"explicit\", matrices = [[[1], [0], [0]]] }", 1, 1);
    const Condition two = sized_condition(
        setting, "{ law = \"explicit\", matrices = [[[0, 0], [1, 0], [0, 1]]] }", 1, 2);
    const ConditionEstimates simulated =
        run({.file = "", .text = "", .sets = {}, .swept = {}, .conditions = {blocks}}, {})
            .conditions.at(0)
            .estimates;
    for (const TheorySource source : {TheorySource::exact, TheorySource::first_order}) {
      const HeadTheory both = compute_theory(blocks, source, 1).heads[0];
      const HeadTheory first = compute_theory(one, source, 1).heads[0];
      const HeadTheory second = compute_theory(two, source, 1).heads[0];
      EXPECT_NEAR(both.bias(0), first.bias(0), 1e-9);
      EXPECT_NEAR(both.bias(1), second.bias(0), 1e-9);
      EXPECT_NEAR(both.covariance(0, 0), first.covariance(0, 0), 1e-9);
      EXPECT_NEAR(both.covariance(1, 1), second.covariance(0, 0), 1e-9);
      EXPECT_GT(std::abs(both.bias(1) - both.bias(0)), 1e-3);
      if (source == TheorySource::first_order) continue;
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t l = 0; l <= h; ++l) {
          const Estimate& figure = simulated.queries[0].head_covariance[2 * h + l];
          const double exact =
              both.covariance(static_cast<Eigen::Index>(h), static_cast<Eigen::Index>(l));
          EXPECT_LE(std::abs(figure.value - exact), 4 * figure.mcse) << kernel << h << l;
          EXPECT_GT(std::abs(figure.value - 1.05 * exact), 4 * figure.mcse);
        }
      }
    }
  }
}

}  // namespace
}  // namespace headlab
