// SPDX-License-Identifier: Apache-2.0
// Sizes whose products an int does not hold are refused before anything is allocated.
#include "kernels/cuda/sizes.h"

#include <gtest/gtest.h>

#include "kernels/cuda/launch.h"
#include "kernels/testing/device_fixture.h"

namespace headlab::emulated_cuda {
namespace {

/// What is said of sizes; empty where they pass.
std::string refusal(const PlanSizes& sizes) {
  try {
    check_sizes(sizes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Sizes, AProductIsRefusedFrom2To31On) {
  constexpr std::uint64_t half = std::uint64_t{1} << 16;
  EXPECT_EQ(count_of("numbers", {half, half / 2 - 1}), 2147418112);
  EXPECT_EQ(count_of("numbers", {(std::uint64_t{1} << 31) - 1}), 2147483647);
  EXPECT_EQ(count_of("numbers", {}), 1);
  EXPECT_THROW(count_of("numbers", {half, half / 2}), std::invalid_argument);
  // Products that wrap to something small in 32 or in 64 bits.
  EXPECT_THROW(count_of("numbers", {half, half}), std::invalid_argument);
  EXPECT_THROW(count_of("numbers", {half * half, half * half}), std::invalid_argument);
  EXPECT_THROW(count_of("numbers", {~std::uint64_t{0}}), std::invalid_argument);
  try {
    count_of("queries of a batch", {half, half});
    ADD_FAILURE() << "2^32 pass";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "backend cuda: 65536 x 65536 queries of a batch are 2^31 or more - use "
                 "--backend cpu");
  }
}

TEST(Sizes, EachProductOfAPlanIsChecked) {
  const PlanSizes sizes = {.d = 1000, .heads = 500, .k = 64, .queries = 20000, .pairs = true};
  EXPECT_EQ(refusal(sizes), "");
  PlanSizes large = sizes;
  large.queries = 80000;
  EXPECT_NE(refusal(large).find("numbers of queries"), std::string::npos) << refusal(large);
  large = sizes;
  large.d = 100000;
  EXPECT_NE(refusal(large).find("numbers of projections"), std::string::npos) << refusal(large);
  large = {.d = 2, .heads = 50000, .k = 1, .queries = 1, .pairs = true};
  EXPECT_NE(refusal(large).find("sums over pairs"), std::string::npos) << refusal(large);
  large.pairs = false;
  EXPECT_EQ(refusal(large), "");
}

/// A plan of large sizes without numbers, of which nothing may be read.
TEST_F(Cuda, ALargePlanIsRefusedBeforeMemoryIsTaken) {
  Plan plan = test::make_plan({.n = 64}, GaussianKernel{.bandwidth = 1});
  plan.heads = 1 << 10;
  plan.k = 1 << 5;
  plan.queries = 1 << 17;
  plan.d = 1 << 6;
  plan.projections.clear();
  plan.query_points.clear();
  const auto backend = make_cuda_backend();
  EXPECT_THROW(backend->worker(plan), std::invalid_argument);
  EXPECT_EQ(control::allocations(), 0);
}

TEST_F(Cuda, MoreTokensThanAnIntNumbersAreRefusedBeforeMemoryIsTaken) {
  Plan plan =
      test::make_plan({.n = 64, .d = 1, .heads = 1, .k = 1}, GaussianKernel{.bandwidth = 1});
  plan.n = std::uint64_t{1} << 32;  // none, in 32 bits
  try {
    make_cuda_backend()->worker(plan);
    ADD_FAILURE() << "2^32 tokens pass";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(
        std::string(error.what()).find("4294967296 tokens of a training set are 2^31 or more"),
        std::string::npos)
        << error.what();
  }
  EXPECT_EQ(control::allocations(), 0);
}

TEST_F(Cuda, AGridThatNoDeviceHasIsRefused) {
  Stream stream;
  bool ran = false;
  void (*const kernel)(bool*) = [](bool* found) { *found = true; };
  const std::int64_t blocks = (std::int64_t{1} << 32) + 1;  // one, in 32 bits
  EXPECT_THROW(launch(stream, "sum", {.blocks_x = blocks, .threads = 32}, kernel, &ran),
               std::invalid_argument);
  EXPECT_FALSE(ran);
  launch(stream, "sum", {.blocks_x = 1, .threads = 32}, kernel, &ran);
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace headlab::emulated_cuda
