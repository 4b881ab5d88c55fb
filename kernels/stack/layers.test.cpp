// SPDX-License-Identifier: Apache-2.0
// The stack against known answers, computed with many digits by another
// program.
#include "kernels/stack/layers.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/stack/testing/known_stack.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

using nlohmann::json;

std::vector<LayerMetrics> metrics_of(const json& known) {
  const Stack stack = known_stack(known["scenario"]);
  return stack_metrics(stack, {}, known_tokens(known["scenario"]));
}

TEST(stack, ends_within_a_replicate) {
  const json known = known_depth_cases("simplex").at(0);
  Stack stack = known_stack(known["scenario"]);
  stack.layers = 100;
  const auto metrics = [&] { return stack_metrics(stack, {}, known_tokens(known["scenario"])); };
  EXPECT_EQ(metrics().size(), 101u);
  int asked = 0;
  const StopScope scope([&] { return ++asked > 5; });
  EXPECT_THROW(metrics(), WorkStopped);
}

TEST(stack, agrees_with_deterministic_known_answers) {
  std::size_t cases = 0;
  for (const char* kind :
       {"simplex", "simplex_split_values", "log_residual_without_skip", "layers_explicit"}) {
    for (const json& known : known_depth_cases(kind)) {
      EXPECT_LE(largest_miss(metrics_of(known), known), 1) << kind << known["scenario"]["layers"];
      ++cases;
    }
  }
  EXPECT_EQ(cases, 17u);
}

TEST(stack, has_the_tokens_of_known_answers) {
  for (const json& known : known_depth_cases("layers_explicit")) {
    const Stack stack = known_stack(known["scenario"]);
    StackState state(stack, {}, known_tokens(known["scenario"]));
    for (const json& expected : known["expected"]["tokens"]) {
      state.advance();
      const Eigen::MatrixXd right = matrix_from(expected);
      EXPECT_LE((plain(state.tokens()) - right).cwiseAbs().maxCoeff(),
                1e-9 * right.cwiseAbs().maxCoeff());
    }
  }
}

TEST(stack, negative_control_small_changes_miss_the_known_answers) {
  const json known = known_depth_cases("layers_explicit").at(1);
  auto miss = [&](const auto& change) {
    json changed = known;
    change(changed["scenario"]);
    return largest_miss(metrics_of(changed), known);
  };
  EXPECT_LE(miss([](json&) {}), 1);
  EXPECT_GT(miss([](json& s) { s["layers"]["memory"] = 0.4001; }), 1);
  EXPECT_GT(miss([](json& s) { s["layers"]["branch"] = 1.0001; }), 1);
  EXPECT_GT(miss([](json& s) { s["layers"]["norm"]["epsilon"] = 1e-6; }), 1);
  EXPECT_GT(miss([](json& s) { s["layers"]["mask"] = "none"; }), 1);
  json nan = known;
  nan["expected"]["layers"][1]["entropy"] = std::nan("");
  EXPECT_EQ(largest_miss(metrics_of(nan), nan), HUGE_VAL);
}

}  // namespace
}  // namespace headlab
