// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/sequence_states.h"

#include <gtest/gtest.h>

namespace headlab {
namespace {

TEST(SequenceStates, GiveThePlaceNearestBeforeAPart) {
  SequenceStates states;
  EXPECT_EQ(states.take(3, 64).next, 0u);
  states.put(3, {0, 32, {1}});
  states.put(3, {0, 96, {2}});
  states.put(3, {0, 64, {3}});
  EXPECT_EQ(states.take(3, 95).last, std::vector<float>{3});
  // It is another thread's until it is put back.
  EXPECT_EQ(states.take(3, 95).last, std::vector<float>{1});
  EXPECT_EQ(states.take(3, 95).next, 0u);
  EXPECT_EQ(states.take(4, 96).next, 0u);
  EXPECT_EQ(states.take(3, 96).last, std::vector<float>{2});
}

TEST(SequenceStates, ForgetEarlierReplicates) {
  SequenceStates states;
  states.put(3, {0, 32, {1}});
  states.put(4, {0, 32, {2}});
  EXPECT_EQ(states.take(3, 32).next, 0u);
  EXPECT_EQ(states.take(4, 32).last, std::vector<float>{2});
}

}  // namespace
}  // namespace headlab
