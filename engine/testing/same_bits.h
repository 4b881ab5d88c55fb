// SPDX-License-Identifier: Apache-2.0
/// \file Runs that have to agree to the bit.
#pragma once

#include <cstddef>

#include <gtest/gtest.h>

#include "engine/results/result.h"

namespace headlab {

inline void expect_same_nodes(const MomentTree& a, const MomentTree& b) {
  ASSERT_EQ(a.nodes().size(), b.nodes().size());
  for (std::size_t i = 0; i < a.nodes().size(); ++i) {
    const Node &left = a.nodes()[i], &right = b.nodes()[i];
    EXPECT_EQ(left.first, right.first);
    EXPECT_EQ(left.moments.count, right.moments.count);
    EXPECT_EQ(left.moments.mean, right.moments.mean);
    EXPECT_EQ(left.moments.comoment, right.moments.comoment);
    EXPECT_EQ(left.moments.windows, right.moments.windows);
  }
}

/// Nodes and extremes.
inline void expect_same_bits(const MomentTree& a, const MomentTree& b) {
  expect_same_nodes(a, b);
  ASSERT_TRUE(a.kept_extremes());
  EXPECT_EQ(a.kept_extremes(), b.kept_extremes());
}

inline void expect_same_bits(const RunResult& a, const RunResult& b) {
  ASSERT_EQ(a.conditions.size(), b.conditions.size());
  for (std::size_t c = 0; c < a.conditions.size(); ++c) {
    SCOPED_TRACE(c);
    expect_same_bits(a.conditions[c].tree, b.conditions[c].tree);
    EXPECT_EQ(a.conditions[c].estimates.mse.value, b.conditions[c].estimates.mse.value);
    EXPECT_EQ(a.conditions[c].estimates.mse.mcse, b.conditions[c].estimates.mse.mcse);
  }
}

}  // namespace headlab
