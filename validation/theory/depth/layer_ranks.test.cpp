// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/layer_ranks.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

TEST(LayerRanks, AgreeWithTheKnownAnswers) {
  for (const nlohmann::json& known : depth_cases("ranks")) {
    const nlohmann::json& in = known["inputs"];
    const LayerSizes sizes = {
        .n = in["n"], .d = in["d"], .heads = in["H"], .dim = in["d_k"], .value_dim = in["d_v"]};
    const auto expected = [&](const char* name) { return known["expected"][name].get<int>(); };
    EXPECT_EQ(rank_after_layer(sizes, 1, false), expected("rank_one_tokens_after_one_layer"));
    EXPECT_EQ(rank_after_layer(sizes, 1, true), expected("with_skip"));
    EXPECT_EQ(generic_projection_nullity(sizes), expected("nullity_generic_output_projection"));
    EXPECT_EQ(shared_projection_nullity(sizes), expected("nullity_equal_blocks"));
    EXPECT_EQ(gauge_dimension(sizes, false), expected("gauge_dimension"));
    // Negative control: one head more.
    LayerSizes more = sizes;
    ++more.heads;
    EXPECT_NE(gauge_dimension(more, false), expected("gauge_dimension"));
    EXPECT_NE(shared_projection_nullity(more), expected("nullity_equal_blocks"));
  }
}

TEST(LayerRanks, StayWithinTheSizes) {
  const LayerSizes sizes = {.n = 6, .d = 8, .heads = 2, .dim = 3, .value_dim = 2};
  EXPECT_EQ(rank_after_layer(sizes, 0, true), 0);
  EXPECT_EQ(rank_after_layer(sizes, 6, true), 6);
  EXPECT_EQ(rank_after_layer(sizes, 3, false), 4);  // H d_v
  EXPECT_EQ(rank_after_layer(sizes, 3, true), 6);
  EXPECT_EQ(gauge_dimension(sizes, true), 2 * (9 + 4 + 6 + 2));
}

TEST(LayerRanks, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(rank_after_layer({.n = 3, .d = 2}, 3, true), InvalidInput);
  EXPECT_THROW(rank_after_layer({.n = 0}, 0, true), InvalidInput);
  EXPECT_THROW(gauge_dimension({.d = 2, .dim = 3}, false), InvalidInput);
  EXPECT_THROW(shared_projection_nullity({.d = 2, .value_dim = 3}), InvalidInput);
}

}  // namespace
}  // namespace headlab
