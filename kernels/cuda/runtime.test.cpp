// SPDX-License-Identifier: Apache-2.0
// runtime.h on a GPU. Every case is skipped where there is none.
#include "kernels/cuda/runtime.h"

#include <bit>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/projection.h"
#include "kernels/cuda/status/status.h"
#include "kernels/testing/end_in_time.h"

namespace headlab::cuda {
namespace {

/// Says what was built, so that a report from another machine says it too.
class PrintsBuild : public testing::Environment {
 public:
  void SetUp() override { std::cout << build_text() << std::endl; }
};
[[maybe_unused]] const testing::Environment* const prints_build =
    testing::AddGlobalTestEnvironment(new PrintsBuild);

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    try {
      devices_ = usable_devices();
    } catch (const Unavailable& missing) {
      GTEST_SKIP() << missing.what();
    }
    use_device(devices_[0].number);
  }
  std::vector<cuda::GpuStatus> devices_;
};

std::vector<float> random_floats(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(size);
  for (float& value : values) value = uniform(random);
  return values;
}

Memory copy_of(Stream& stream, const std::vector<float>& values) {
  Memory memory(values.size() * sizeof(float));
  stream.copy_to_device(memory.as<void>(), values.data(), values.size() * sizeof(float));
  return memory;
}

std::vector<float> read(Stream& stream, const Memory& memory, std::size_t size) {
  std::vector<float> values(size, std::numeric_limits<float>::quiet_NaN());
  stream.copy_to_host(values.data(), memory.as<void>(), size * sizeof(float));
  stream.synchronise();
  return values;
}

TEST_F(Gpu, IsDescribed) {
  for (const cuda::GpuStatus& device : devices_) {
    std::cout << device.number << ": " << device.name << ", " << cuda::sm_name(device.capability)
              << ", " << device.multiprocessors << " multiprocessors, " << device.memory
              << " bytes, " << device.shared_memory << " shared\n";
    EXPECT_GE(device.capability.major, 8);
    EXPECT_GT(device.multiprocessors, 0);
    EXPECT_GE(device.shared_memory, std::uint64_t{48} * 1024);
    EXPECT_EQ(device.name, devices_[0].name);
  }
  EXPECT_GT(free_memory(), 0u);
  EXPECT_LE(free_memory(), devices_[0].memory);
}

TEST_F(Gpu, KeepsWhatIsCopiedAndClearsIt) {
  Stream stream;
  const std::vector<float> values = random_floats(1000, 1);
  const Memory memory = copy_of(stream, values);
  EXPECT_EQ(read(stream, memory, 1000), values);
  stream.clear(memory.as<void>(), 999 * sizeof(float));
  std::vector<float> cleared(1000, 0.0f);
  cleared[999] = values[999];
  EXPECT_EQ(read(stream, memory, 1000), cleared);
}

TEST_F(Gpu, LeavesMemoryEmptyThatCannotBeHad) {
  const std::uint64_t before = free_memory();
  {
    const Memory memory(std::uint64_t{1} << 50);
    EXPECT_TRUE(memory.empty());
  }
  // Nothing later is blamed for it.
  Stream stream;
  stream.check_launch("no kernel");
  Memory some(1 << 20);
  EXPECT_FALSE(some.empty());
  Memory other = std::move(some);
  EXPECT_TRUE(some.empty());  // NOLINT(bugprone-use-after-move): what a moved-from one is, is said
  EXPECT_FALSE(other.empty());
  other = Memory();
  EXPECT_TRUE(other.empty());
  EXPECT_TRUE(Memory(0).empty());
  EXPECT_LE(free_memory(), before);
}

TEST_F(Gpu, NamesWhatFailedAndWhere) {
  Stream stream;
  const Memory memory(64);
  float values[16];
  try {
    // Rows that overlap: the arguments are refused, and nothing is copied.
    stream.copy_rows_to_host(values, memory.as<void>(), 8, 4, 2);
    stream.synchronise();
    FAIL() << "a copy of rows that overlap passed";
  } catch (const DeviceError& error) {
    const std::string line = error.what();
    for (const std::string& part : {std::string("a copy from the GPU of 16 bytes failed on GPU "),
                                    devices_[0].name, std::string("cudaErrorInvalid")}) {
      EXPECT_NE(line.find(part), std::string::npos) << line;
    }
  }
  stream.check_launch("no kernel");  // the error does not stay
  EXPECT_THROW(use_device(1000), DeviceError);
}

/// Ends with 3 where a copy from address 0 is an error that names the copy and the GPU, and with 4
/// where it passes, as it may where a device reads the memory of the host.
[[noreturn]] void copy_from_nowhere() {
  test::end_in_time();
  const std::string name = usable_devices().front().name;
  use_device(usable_devices().front().number);
  float value = 0;
  try {
    Stream stream;
    stream.copy_to_host(&value, nullptr, 4);
    stream.synchronise();
  } catch (const DeviceError& error) {
    const std::string line = error.what();
    std::cerr << line << std::endl;
    const bool says = line.find("a copy from the GPU of 4 bytes failed on GPU ") == 0 &&
                      line.find(name) != std::string::npos;
    std::_Exit(says ? 3 : 1);
  }
  std::cerr << "the copy passed" << std::endl;
  std::_Exit(4);
}

TEST_F(Gpu, ACopyFromNowhereHarmsNoOtherTest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // In a process of its own: it may hang, or leave a fault after which a process has no device.
  const auto ends_as_it_says = [](int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 4);
  };
  EXPECT_EXIT(copy_from_nowhere(), ends_as_it_says, "the copy passed|failed on GPU");
  // This process still has it.
  Stream stream;
  const std::vector<float> values = random_floats(10, 4);
  EXPECT_EQ(read(stream, copy_of(stream, values), 10), values);
}

// A process that hangs ends by itself, and its test goes on. Needs no GPU.
TEST(GpuControl, AHangEndsInTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    test::end_in_time(1);
    for (;;) ::pause();
  };
  EXPECT_EXIT(hang(), ::testing::KilledBySignal(SIGALRM), "");
}

/// Largest error of keys as a multiple of the bound d eps sum |w| |x|; NaN counts as infinite.
double worst_multiple(const std::vector<float>& w, const std::vector<float>& x,
                      const std::vector<float>& keys, int outputs, int d, int points) {
  double worst = 0;
  for (int o = 0; o < outputs; ++o) {
    for (int i = 0; i < points; ++i) {
      double sum = 0, size = 0;
      for (int c = 0; c < d; ++c) {
        const double term = static_cast<double>(w[static_cast<std::size_t>(o * d + c)]) *
                            x[static_cast<std::size_t>(c * points + i)];
        sum += term;
        size += std::fabs(term);
      }
      const double error = std::fabs(keys[static_cast<std::size_t>(o * points + i)] - sum) /
                           (d * static_cast<double>(std::numeric_limits<float>::epsilon()) * size);
      if (!(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error;
    }
  }
  return worst;
}

/// keys [outputs][points] of w and x, on the current device.
using Product = std::function<std::vector<float>(
    const std::vector<float>& w, const std::vector<float>& x, int outputs, int d, int points)>;

/// Memory whose numbers are all to be replaced.
Memory keys_for(Stream& stream, int outputs, int points) {
  const auto count = static_cast<std::size_t>(outputs) * static_cast<std::size_t>(points);
  return copy_of(stream, std::vector<float>(count, std::numeric_limits<float>::quiet_NaN()));
}

void expect_full_float32(const Product& product, int last_device) {
  struct Shape {
    int outputs, d, points;
  };
  for (const Shape& s : {Shape{1, 1, 64}, Shape{2, 3, 64}, Shape{16, 4, 512}, Shape{64, 64, 1792},
                         Shape{100, 33, 4096}}) {
    SCOPED_TRACE(std::to_string(s.outputs) + " " + std::to_string(s.d) + " " +
                 std::to_string(s.points));
    const auto outputs = static_cast<std::size_t>(s.outputs), d = static_cast<std::size_t>(s.d),
               points = static_cast<std::size_t>(s.points);
    const std::vector<float> w = random_floats(outputs * d, 2), x = random_floats(d * points, 3);
    const std::vector<float> got = product(w, x, s.outputs, s.d, s.points);
    EXPECT_LE(worst_multiple(w, x, got, s.outputs, s.d, s.points), 1);

    // Another stream and another thread have the same bits.
    std::vector<float> again;
    std::thread([&] {
      use_device(last_device);
      again = product(w, x, s.outputs, s.d, s.points);
    }).join();
    ASSERT_EQ(again.size(), got.size());
    std::size_t differ = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      differ += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(again[i]);
    }
    EXPECT_EQ(differ, 0u);
  }
}

TEST_F(Gpu, ProjectsInFullFloat32) {
  expect_full_float32(
      [](const std::vector<float>& w, const std::vector<float>& x, int outputs, int d, int points) {
        Stream stream;
        const Memory on_w = copy_of(stream, projection_columns(w, d)), on_x = copy_of(stream, x);
        const Memory keys = keys_for(stream, outputs, points);
        project(stream, {.sets = {.padded_n = points,
                                  .d = d,
                                  .key_rows = outputs,
                                  .x = on_x.as<float>(),
                                  .keys = keys.as<float>()},
                         .projections = on_w.as<float>(),
                         .replicates = 1});
        return read(stream, keys, static_cast<std::size_t>(outputs * points));
      },
      devices_.back().number);
}

TEST_F(Gpu, MultipliesInFullFloat32) {
  expect_full_float32(
      [](const std::vector<float>& w, const std::vector<float>& x, int outputs, int d, int points) {
        Stream stream;
        const Memory on_w = copy_of(stream, w), on_x = copy_of(stream, x);
        const Memory keys = keys_for(stream, outputs, points);
        stream.multiply(on_w.as<float>(), on_x.as<float>(), keys.as<float>(), outputs, d, points);
        return read(stream, keys, static_cast<std::size_t>(outputs * points));
      },
      devices_.back().number);
}

// The bound that expect_full_float32() holds keys to is one that TF32 breaks. Needs no GPU.
TEST(GpuControl, TheBoundRefusesTf32) {
  constexpr int outputs = 16, d = 4, points = 500;
  const std::vector<float> w = random_floats(outputs * d, 2), x = random_floats(d * points, 3);
  auto multiply = [&](std::uint32_t mask) {
    std::vector<float> keys(outputs * points, 0.0f);
    auto cut = [mask](float v) {
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) & mask);
    };
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t c = 0; c < d; ++c) {
        for (std::size_t i = 0; i < points; ++i) {
          keys[o * points + i] += cut(w[o * d + c]) * cut(x[c * points + i]);
        }
      }
    }
    return keys;
  };
  EXPECT_LE(worst_multiple(w, x, multiply(~0u), outputs, d, points), 1);
  EXPECT_GT(worst_multiple(w, x, multiply(0xffffe000u), outputs, d, points), 1);  // 10 bits kept
  EXPECT_EQ(
      worst_multiple(w, x, std::vector<float>(outputs * points, std::nanf("")), outputs, d, points),
      HUGE_VAL);
}

}  // namespace
}  // namespace headlab::cuda
