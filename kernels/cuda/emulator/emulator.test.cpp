// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/emulator/emulator.h"

#include <array>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/launch.h"
#include "kernels/testing/emulator_fixture.h"

namespace headlab::emulated_cuda {
namespace {

// ---- Places and orders ----

using Visit = std::tuple<unsigned, unsigned, unsigned>;  // block y, block x, thread

std::vector<Visit> visits() {
  std::vector<Visit> seen;
  emulate({3, 2, 64, 0}, [&] {
    EXPECT_EQ(block_threads(), 64u);
    seen.emplace_back(block_index_y(), block_index_x(), thread_index());
  });
  return seen;
}

TEST_F(Emulator, RunsEveryThreadOnceInTheOrderAskedFor) {
  std::vector<Visit> expected;
  for (unsigned y = 0; y < 2; ++y) {
    for (unsigned x = 0; x < 3; ++x)
      for (unsigned t = 0; t < 64; ++t) expected.emplace_back(y, x, t);
  }
  EXPECT_EQ(visits(), expected);
  set_thread_order(Order::descending);
  set_block_order(Order::descending);
  EXPECT_EQ(visits(), std::vector<Visit>(expected.rbegin(), expected.rend()));
}

TEST_F(Emulator, RefusesGridsThatADeviceWouldRefuse) {
  const auto nothing = [] {};
  EXPECT_EQ(error_of({1, 1, 1024, max_shared_bytes}, nothing), "");
  for (const Grid& grid :
       {Grid{0, 1, 32, 0}, Grid{1, 0, 32, 0}, Grid{1, 65536, 32, 0}, Grid{1, 1, 0, 0},
        Grid{1, 1, 33, 0}, Grid{1, 1, 1056, 0}, Grid{1, 1, 32, max_shared_bytes + 1}})
    EXPECT_NE(error_of(grid, nothing), "");
  EXPECT_NE(error_of({}, [] { emulate({}, [] {}); }), "");
  EXPECT_THROW(synchronise_block(), std::logic_error);
  EXPECT_THROW(shuffle_xor(1, 1), std::logic_error);
  EXPECT_THROW(commit_copies(), std::logic_error);
}

HEADLAB_KERNEL void write_scaled(float* out, float scale) {
  out[block_index_x() * block_threads() + thread_index()] =
      scale * static_cast<float>(thread_index());
}

TEST_F(Emulator, LaunchesKernelsOnAStream) {
  const Memory memory(2 * 32 * sizeof(float));
  Stream stream;
  launch(stream, "write_scaled", {.blocks_x = 2, .threads = 32}, write_scaled, memory.as<float>(),
         0.5f);
  std::array<float, 64> out{};
  stream.copy_to_host(out.data(), memory.as<float>(), sizeof(out));
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(out[i], 0.5f * static_cast<float>(i % 32));
}

// ---- Shared memory and the barrier ----

TEST_F(Emulator, PoisonsSharedMemoryBeforeEveryBlock) {
  emulate({3, 1, 32, 48}, [] {
    if (thread_index() == 0) {
      EXPECT_EQ(std::bit_cast<std::uintptr_t>(shared_memory()) % 16, 0u);
      for (int i = 0; i < 12; ++i) {
        EXPECT_TRUE(std::isnan(shared_floats()[i]));
        shared_floats()[i] = 0;
      }
    }
  });
}

/// [128] reversed through shared memory.
std::vector<float> reversed(bool barrier) {
  std::vector<float> out(128);
  emulate({1, 1, 128, 128 * sizeof(float)}, [&] {
    const unsigned t = thread_index();
    shared_floats()[t] = static_cast<float>(t);
    if (barrier) synchronise_block();
    out[t] = shared_floats()[127 - t];
  });
  return out;
}

TEST_F(Emulator, ABarrierLetsEveryThreadSeeWhatTheOthersWrote) {
  in_both_orders([] {
    const auto out = reversed(true);
    for (unsigned t = 0; t < 128; ++t) EXPECT_EQ(out[t], static_cast<float>(127 - t));
  });
}

TEST_F(Emulator, AMissingBarrierShowsPoison) {
  in_both_orders([] {
    int poisoned = 0;
    for (const float x : reversed(false)) poisoned += std::isnan(x) ? 1 : 0;
    EXPECT_EQ(poisoned, 64);
  });
}

/// Where the second value overwrites the first before all have read it.
float sum_of_two_broadcasts(bool barrier) {
  float sum = 0;
  emulate({1, 1, 64, sizeof(float)}, [&] {
    for (const float value : {1.0f, 100.0f}) {
      if (thread_index() == 0) *shared_floats() = value;
      synchronise_block();
      sum += *shared_floats();
      if (barrier) synchronise_block();
    }
  });
  return sum;
}

TEST_F(Emulator, AMissingSecondBarrierShowsInOneOrder) {
  in_both_orders([] { EXPECT_EQ(sum_of_two_broadcasts(true), 64.0f * 101.0f); });
  set_thread_order(Order::ascending);
  EXPECT_NE(sum_of_two_broadcasts(false), 64.0f * 101.0f);
  set_thread_order(Order::descending);
  EXPECT_EQ(sum_of_two_broadcasts(false), 64.0f * 101.0f);
}

TEST_F(Emulator, ADivergentBarrierThrows) {
  in_both_orders([] {
    EXPECT_EQ(
        error_of({1, 1, 64, 0},
                 [] {
                   if (thread_index() != 40) synchronise_block();
                 }),
        "emulated kernel, block (0, 0): thread 0 waits at synchronise_block but thread 40 has "
        "ended - every thread of a block has to call it");
    EXPECT_EQ(
        error_of({2, 1, 64, 0},
                 [] {
                   if (block_index_x() == 1 && thread_index() == 33) shuffle_xor(1, 1);
                   synchronise_block();
                 }),
        "emulated kernel, block (1, 0): thread 33 waits at shuffle_xor but thread 32 waits at "
        "synchronise_block - all 32 lanes of a warp have to call it");
  });
}

#if defined(__SANITIZE_ADDRESS__)
TEST_F(Emulator, AddressSanitizerSeesWhereSharedMemoryEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // volatile, so that the compiler neither sees the fault before it happens nor drops it
  volatile unsigned end = 32;
  emulate({1, 1, 32, 128}, [&] { shared_floats()[(end - 1) & thread_index()] = 1; });
  EXPECT_DEATH(
      emulate({1, 1, 32, 128}, [&] { shared_floats()[thread_index() == 7 ? end : 0u] = 1; }),
      "heap-buffer-overflow");
  EXPECT_DEATH(emulate({1, 1, 32, 128},
                       [&] {
                         std::array<float, 4> own{};
                         synchronise_block();
                         static_cast<volatile float*>(own.data())[end / 8] = 1;
                         synchronise_block();
                       }),
               "stack-buffer-overflow|insufficient space");
}
#else
TEST_F(Emulator, AddressSanitizerSeesWhereSharedMemoryEnds) {
  GTEST_SKIP() << "needs -fsanitize=address";
}
#endif

// ---- Copies ----

struct Copied {
  alignas(16) float global[3 * 32 * 4];
  float sums[3] = {};  // of what the lanes see of each of three groups

  Copied() {
    for (int i = 0; i < 3 * 32 * 4; ++i) global[i] = static_cast<float>(i / 128 + 1);
  }
};

/// Three groups of 16 bytes a thread; `wait` is what comes before they are read.
template <class Wait>
Copied copied(const Wait& wait, bool commit_last = true) {
  Copied c;
  emulate({1, 1, 32, sizeof(c.global)}, [&] {
    const unsigned t = thread_index();
    for (unsigned group = 0; group < 3; ++group) {
      copy_async(shared_floats() + 128 * group + 4 * t, c.global + 128 * group + 4 * t);
      if (group < 2 || commit_last) commit_copies();
    }
    wait();
    synchronise_block();
    for (unsigned group = 0; group < 3; ++group)
      c.sums[group] += shared_floats()[128 * group + 4 * (31 - t) + 3];
  });
  return c;
}

void expect_sums(const Copied& c, int groups) {
  for (int group = 0; group < 3; ++group)
    if (group < groups)
      EXPECT_EQ(c.sums[group], 32.0f * static_cast<float>(group + 1));
    else
      EXPECT_TRUE(std::isnan(c.sums[group])) << "group " << group;
}

TEST_F(Emulator, CopiesAreThereWhenTheirThreadHasWaited) {
  in_both_orders([] {
    expect_sums(copied([] { wait_copies<0>(); }), 3);
    expect_sums(copied([] { wait_copies<1>(); }), 2);
    expect_sums(copied([] { wait_copies<2>(); }), 1);
  });
}

TEST_F(Emulator, AForgottenWaitOrCommitShowsPoison) {
  expect_sums(copied([] {}), 0);
  expect_sums(copied([] { wait_copies<3>(); }), 0);
  expect_sums(copied([] { wait_copies<0>(); }, false), 2);
  // A group without copies counts, as in the tail of a pipeline.
  expect_sums(copied([] {
                commit_copies();
                wait_copies<1>();
              }),
              3);
}

TEST_F(Emulator, ForgetsTheCopiesOfABlockThatHasEnded) {
  Copied c;
  emulate({2, 1, 32, 512}, [&] {
    if (block_index_x() == 0) {
      copy_async(shared_floats() + 4 * thread_index(), c.global);
    } else {
      commit_copies();
      wait_copies<0>();
      EXPECT_TRUE(std::isnan(shared_floats()[4 * thread_index()]));
    }
  });
}

TEST_F(Emulator, CopiesThatAreMisalignedOrOutsideThrow) {
  const Copied c;
  const auto copying = [&](int to, int from) {
    return error_of({1, 1, 32, 64}, [&] { copy_async(shared_floats() + to, c.global + from); });
  };
  EXPECT_EQ(copying(12, 4), "");
  EXPECT_NE(copying(2, 4), "");
  EXPECT_NE(copying(12, 3), "");
  EXPECT_NE(copying(16, 4), "");
  EXPECT_NE(copying(-4, 4), "");
}

// ---- Errors and host threads ----

TEST_F(Emulator, WhatAThreadThrowsComesOutAndTheOthersAreUnwound) {
  struct Counted {
    int& alive;
    explicit Counted(int& a) : alive(a) { ++alive; }
    ~Counted() { --alive; }
  };
  in_both_orders([] {
    int alive = 0;
    bool entered_next_block = false;
    try {
      emulate({3, 1, 64, 16}, [&] {
        const Counted counted(alive);
        entered_next_block |= block_index_x() == 1;
        synchronise_block();
        shuffle_xor(1, 1);
        if (thread_index() == 21) throw std::runtime_error("thread 21");
        synchronise_block();
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "thread 21");
    }
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(entered_next_block);
    EXPECT_EQ(shared_memory(), nullptr);
    // The fibers can be used again.
    check_shuffle<int>(1);
  });
}

TEST_F(Emulator, RunsOnSeveralHostThreadsAtOnce) {
  constexpr unsigned hosts = 4;
  std::array<std::vector<float>, hosts> results;
  std::vector<std::thread> threads;
  for (unsigned host = 0; host < hosts; ++host) {
    threads.emplace_back([&results, host] {
      std::vector<float> out(20 * 64);
      emulate({20, 1, 64, 64 * sizeof(float)}, [&] {
        const unsigned t = thread_index();
        shared_floats()[t] = static_cast<float>(host * 1000 + block_index_x());
        for (int i = 0; i < 20; ++i) {
          synchronise_block();
          const float x = shuffle_xor(shared_floats()[63 - t], 1);
          synchronise_block();
          shared_floats()[t] = x + 1;
        }
        out[block_index_x() * 64 + t] = shared_floats()[t];
      });
      results[host] = std::move(out);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned host = 0; host < hosts; ++host)
    for (unsigned i = 0; i < 20 * 64; ++i)
      ASSERT_EQ(results[host][i], static_cast<float>(host * 1000 + i / 64 + 20));
}

}  // namespace
}  // namespace headlab::emulated_cuda
