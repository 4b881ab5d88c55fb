// SPDX-License-Identifier: Apache-2.0
#include "kernels/parallel_for.h"

#include <atomic>
#include <chrono>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (const int threads : {0, 1, 3, 200}) {
    std::vector<int> visits(100);
    parallel_for(visits.size(), threads, [&](std::size_t i) { ++visits[i]; });
    EXPECT_EQ(visits, std::vector<int>(100, 1)) << threads;
  }
  parallel_for(0, 2, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, UsesTheThreadsAskedFor) {
  // Each call waits until all have started, for which each needs a thread of its own.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::atomic<int> started = 0;
  std::vector<std::thread::id> of(4);
  parallel_for(of.size(), 4, [&](std::size_t i) {
    of[i] = std::this_thread::get_id();
    ++started;
    while (started < 4 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(std::set(of.begin(), of.end()).size(), 4u);
  EXPECT_TRUE(std::set(of.begin(), of.end()).contains(std::this_thread::get_id()));

  parallel_for(of.size(), 1, [&](std::size_t i) { of[i] = std::this_thread::get_id(); });
  EXPECT_EQ(of, std::vector(4, std::this_thread::get_id()));
}

TEST(ParallelFor, RethrowsTheExceptionOfTheSmallestIndex) {
  for (const int threads : {1, 4}) {
    std::atomic<int> calls = 0;
    try {
      parallel_for(100000, threads, [&](std::size_t i) {
        ++calls;
        if (i >= 5) throw std::runtime_error(std::to_string(i));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "5");
    }
    EXPECT_LT(calls, 1000) << "work was started after a failure";
  }
}

/// Asks for no stop, and cannot be copied by threads other than the one that made it.
struct OfOneThread {
  OfOneThread() = default;
  OfOneThread(const OfOneThread& from) : maker(from.maker) {
    if (std::this_thread::get_id() != maker) throw std::bad_alloc();
  }
  bool operator()() const { return false; }

  std::thread::id maker = std::this_thread::get_id();
};

TEST(ParallelFor, RethrowsWhatAThreadCannotBeginWith) {
  const StopScope scope{OfOneThread()};
  EXPECT_THROW(parallel_for(2, 2, [](std::size_t) {}), std::bad_alloc);
  EXPECT_NO_THROW(parallel_for(2, 1, [](std::size_t) {}));
}

TEST(ParallelFor, CountsThreads) {
  EXPECT_EQ(thread_count(3), 3);
  EXPECT_GE(thread_count(0), 1);
}

}  // namespace
}  // namespace headlab
