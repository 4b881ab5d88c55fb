// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/runtime.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/emulator/control.h"

namespace headlab::emulated_cuda {
namespace {

class EmulatedRuntime : public testing::Test {
 protected:
  EmulatedRuntime() { control::reset(); }
  ~EmulatedRuntime() override {
    control::reset();
    use_device(0);
    EXPECT_EQ(control::bytes_in_use(), 0u);
    EXPECT_EQ(control::open_streams(), 0);
  }
};

template <class Error, class Call>
std::string call_error(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(EmulatedRuntime, HasTheDevicesThatATestAsksFor) {
  const auto devices = usable_devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].number, 0);
  EXPECT_EQ(devices[0].name, "emulated");
  EXPECT_EQ(devices[0].capability, (cuda::Capability{9, 0}));
  EXPECT_EQ(devices[0].multiprocessors, 2);
  EXPECT_EQ(devices[0].memory, 1u << 30);
  EXPECT_EQ(devices[0].shared_memory, 227u * 1024);
  EXPECT_THROW(use_device(1), DeviceError);
  control::set_devices(3);
  EXPECT_EQ(usable_devices()[2].number, 2);
  use_device(2);
  control::set_devices(0);
  EXPECT_EQ(call_error<Unavailable>(usable_devices),
            "cuda: no device (emulated) - use the cpu backend");
}

TEST_F(EmulatedRuntime, CountsTheMemoryOfEachDevice) {
  control::set_devices(2);
  control::set_memory(1000);
  Memory first(600);
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(free_memory(), 400u);
  EXPECT_TRUE(Memory(401).empty());
  EXPECT_FALSE(Memory(400).empty());
  use_device(1);
  EXPECT_EQ(free_memory(), 1000u);
  const Memory second(1000);
  EXPECT_FALSE(second.empty());
  EXPECT_EQ(control::bytes_in_use(), 1600u);
  EXPECT_EQ(control::peak_bytes(), 1600u);
  first = Memory();
  EXPECT_EQ(control::bytes_in_use(), 1000u);
  use_device(0);
  EXPECT_EQ(free_memory(), 1000u);
  control::set_memory(10);
  EXPECT_EQ(free_memory(), 10u);
}

TEST_F(EmulatedRuntime, MemoryIsPoisonedAndMoves) {
  Memory memory(12);
  auto* data = memory.as<float>();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(data[i]));
  Memory other(std::move(memory));
  EXPECT_EQ(other.as<float>(), data);
  Memory third(8);
  third = std::move(other);
  EXPECT_EQ(third.as<float>(), data);
  EXPECT_EQ(control::bytes_in_use(), 12u);
  EXPECT_TRUE(Memory(0).empty());
}

TEST_F(EmulatedRuntime, FailsTheAllocationThatATestNames) {
  control::fail_allocation(2);
  const Memory first(8);
  const Memory second(8);
  const Memory third(8);
  EXPECT_FALSE(first.empty());
  EXPECT_TRUE(second.empty());
  EXPECT_FALSE(third.empty());
  control::fail_allocation(1);
  control::fail_allocation(0);
  EXPECT_FALSE(Memory(8).empty());
}

TEST_F(EmulatedRuntime, CopiesAndClears) {
  const Memory memory(4 * sizeof(int));
  Stream stream;
  const std::array<int, 3> in = {7, 8, 9};
  std::array<int, 4> out = {};
  stream.copy_to_device(memory.as<int>(), in.data(), sizeof(in));
  stream.clear(memory.as<int>() + 1, sizeof(int));
  stream.copy_to_host(out.data(), memory.as<int>(), sizeof(out));
  stream.synchronise();
  EXPECT_EQ(out, (std::array<int, 4>{7, 0, 9, -1}));
  EXPECT_EQ(control::open_streams(), 1);
}

TEST_F(EmulatedRuntime, RefusesWhatIsNotInOneArrayOfTheDevice) {
  control::set_devices(2);
  const Memory memory(16);
  auto* data = memory.as<unsigned char>();
  std::array<unsigned char, 17> host = {};
  {
    Stream stream;
    EXPECT_NO_THROW(stream.copy_to_device(data + 4, host.data(), 12));
    EXPECT_THROW(stream.copy_to_device(data + 4, host.data(), 13), DeviceError);
    EXPECT_THROW(stream.copy_to_host(host.data(), data, 17), DeviceError);
    EXPECT_THROW(stream.clear(host.data(), 1), DeviceError);
  }
  use_device(1);
  Stream stream;
  EXPECT_EQ(call_error<DeviceError>([&] { stream.clear(data, 1); }),
            "cuda device 1 (emulated): clear: 1 bytes that are not in one array of this device");
  use_device(0);
  EXPECT_EQ(call_error<DeviceError>([&] { stream.check_launch("sums"); }),
            "cuda device 1 (emulated): launch of sums: this thread uses device 0 - call use_device "
            "first");
}

TEST_F(EmulatedRuntime, ALostDeviceShowsInSynchronise) {
  control::set_devices(2);
  Stream stream;
  control::lose_device(1);
  EXPECT_NO_THROW(stream.synchronise());
  control::lose_device(0);
  EXPECT_EQ(call_error<DeviceError>([&] { stream.synchronise(); }),
            "cuda device 0 (emulated): lost (a test said so) - run again on another device");
  EXPECT_THROW(stream.synchronise(), DeviceError);
  control::reset();
  EXPECT_NO_THROW(stream.synchronise());
}

TEST_F(EmulatedRuntime, MultipliesRowByRow) {
  const Memory w(2 * 3 * sizeof(float));
  const Memory x(3 * 4 * sizeof(float));
  const Memory keys(2 * 4 * sizeof(float));
  Stream stream;
  const std::array<float, 6> w_host = {1, 2, 3, 4, 5, 6};
  const std::array<float, 12> x_host = {1, 0, 0, 1, 0, 10, 0, 1, 0, 0, 100, 1};
  std::array<float, 8> out = {};
  stream.copy_to_device(w.as<float>(), w_host.data(), sizeof(w_host));
  stream.copy_to_device(x.as<float>(), x_host.data(), sizeof(x_host));
  stream.multiply(w.as<float>(), x.as<float>(), keys.as<float>(), 2, 3, 4);
  stream.copy_to_host(out.data(), keys.as<float>(), sizeof(out));
  EXPECT_EQ(out, (std::array<float, 8>{1, 20, 300, 6, 4, 50, 600, 15}));
  // Not multiplied and added apart: (1 + 2^-12)^2 - 1 is rounded once.
  const std::array<float, 6> fine = {-1, 1 + 0x1p-12f, 0, 0, 0, 0};
  const std::array<float, 12> one = {1, 0, 0, 0, 1 + 0x1p-12f};
  stream.copy_to_device(w.as<float>(), fine.data(), sizeof(fine));
  stream.copy_to_device(x.as<float>(), one.data(), sizeof(one));
  stream.multiply(w.as<float>(), x.as<float>(), keys.as<float>(), 2, 3, 4);
  EXPECT_EQ(keys.as<float>()[0], 0x1p-11f + 0x1p-24f);
}

TEST_F(EmulatedRuntime, AnArenaGrowsAndItsArraysAreNew) {
  control::set_memory(1 << 20);
  Arena arena;
  ASSERT_TRUE(arena.reserve(2 * Arena::room(1000)));
  auto* const first = arena.take<float>(250);
  auto* const second = arena.take<float>(250);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 256, 0u);
  EXPECT_GE(second - first, 250);
  EXPECT_THROW(arena.take<float>(1), std::logic_error);
  first[249] = second[249] = 1;
  ASSERT_TRUE(arena.reserve(Arena::room(1000)));
  EXPECT_EQ(arena.take<float>(250), first);
  EXPECT_TRUE(std::isnan(first[249])) << "what the last worker left is not to be read";
  EXPECT_EQ(control::allocations(), 1);
  EXPECT_FALSE(arena.reserve(2 << 20));
  EXPECT_FALSE(arena.release()) << "a failed reserve leaves nothing";
  ASSERT_TRUE(arena.reserve(1000));
  EXPECT_TRUE(arena.release());
  EXPECT_EQ(control::bytes_in_use(), 0u);
}

TEST_F(EmulatedRuntime, PageLockedMemoryIsKept) {
  Stream stream;
  void* const first = stream.host_buffer(1000);
  EXPECT_EQ(stream.host_buffer(10), first);
  EXPECT_EQ(control::allocations(), 1);
  stream.host_buffer(1001);
  EXPECT_EQ(control::allocations(), 2);
  control::fail_allocation(1);
  EXPECT_THROW(stream.host_buffer(2000), OutOfMemory);
}

TEST_F(EmulatedRuntime, CopiesRowsSideBySide) {
  const Memory memory(6 * sizeof(int));
  Stream stream;
  const std::array<int, 6> in = {1, 2, 3, 4, 5, 6};
  std::array<int, 4> out = {};
  stream.copy_to_device(memory.as<int>(), in.data(), sizeof(in));
  stream.copy_rows_to_host(out.data(), memory.as<int>(), 8, 16, 2);
  EXPECT_EQ(out, (std::array<int, 4>{1, 2, 5, 6}));
}

TEST_F(EmulatedRuntime, CountsOnSeveralHostThreads) {
  control::set_memory(40 * 64);
  std::vector<std::thread> threads;
  for (int host = 0; host < 4; ++host) {
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        std::vector<Memory> held;
        for (int i = 0; i < 10; ++i) {
          held.emplace_back(std::uint64_t{64});
          EXPECT_FALSE(held.back().empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(control::bytes_in_use(), 0u);
  EXPECT_GE(control::peak_bytes(), 640u);
  EXPECT_LE(control::peak_bytes(), 40u * 64);
}

}  // namespace
}  // namespace headlab::emulated_cuda
