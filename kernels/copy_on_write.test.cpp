// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy_on_write.h"

#include <gtest/gtest.h>

namespace headlab {
namespace {

struct Later;

/// Held where it is declared only, as laws are in a plan.
struct Holder {
  Holder();
  CopyOnWrite<Later> held;
};

Holder copy_of(const Holder& holder) {
  return holder;
}

struct Later {
  int number = 1;
  bool operator==(const Later&) const = default;
};

Holder::Holder() = default;

TEST(CopyOnWrite, AChangeIsOfOneCopy) {
  Holder first;
  Holder second = copy_of(first);
  EXPECT_EQ(&*first.held, &*second.held) << "copies share";
  second.held.own().number = 2;
  EXPECT_EQ(first.held->number, 1);
  EXPECT_EQ(second.held->number, 2);
  EXPECT_FALSE(first.held == second.held);
  second.held.own().number = 1;
  EXPECT_TRUE(first.held == second.held) << "equal values need not be one";
}

}  // namespace
}  // namespace headlab
