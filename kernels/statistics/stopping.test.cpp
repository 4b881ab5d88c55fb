// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/stopping.h"

#include <atomic>
#include <cstddef>

#include <gtest/gtest.h>

#include "kernels/parallel_for.h"

namespace headlab {
namespace {

TEST(Stopping, EndsWorkOfItsScopeAlone) {
  stop_point();  // in none
  std::atomic<bool> asked = false;
  const StopScope scope([&] { return asked.load(); });
  stop_point();
  asked = true;
  EXPECT_THROW(stop_point(), WorkStopped);
  {
    const StopScope none({});
    stop_point();
  }
  EXPECT_THROW(stop_point(), WorkStopped);
}

TEST(Stopping, ReachesTheThreadsOfALoop) {
  std::atomic<int> calls = 0;
  const StopScope scope([&] { return calls >= 10; });
  EXPECT_THROW(parallel_for(1000, 3, [&](std::size_t) { ++calls; }), WorkStopped);
  EXPECT_GE(calls, 10);
  EXPECT_LT(calls, 20);  // each of three threads may have begun one more
  // Within a call as well.
  const int before = calls;
  const StopScope inner([&] { return calls > before + 5; });
  EXPECT_THROW(parallel_for(2, 2,
                            [&](std::size_t) {
                              while (true) {
                                stop_point();
                                ++calls;
                              }
                            }),
               WorkStopped);
}

TEST(Stopping, TellsHowMuchOfTheWorkIsDone) {
  std::atomic<double> done = 7;
  stop_point(0.5);  // of no work
  EXPECT_EQ(done, 7);
  {
    const WorkScope work(done, 4);
    EXPECT_EQ(done, 0);
    stop_point(0.25);
    EXPECT_EQ(done, 1);
    {
      const WorkPart last = WorkPart::number(1, 2);
      EXPECT_EQ(done, 2);
      {
        const WorkPart of_last(0.5, 1);
        EXPECT_EQ(done, 3);
        stop_point(0.5);
        EXPECT_EQ(done, 3.5);
        stop_point();
        EXPECT_EQ(done, 3.5);
      }
      stop_point(0.25);
      EXPECT_EQ(done, 2.5);
    }
    stop_point(0.75);
    EXPECT_EQ(done, 3);
  }
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace headlab
