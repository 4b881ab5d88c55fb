// SPDX-License-Identifier: Apache-2.0
// Selections and counts over the rows of a batch, executed on the host.
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/kernels.h"
#include "kernels/testing/device_fixture.h"

namespace headlab::emulated_cuda {
namespace {

/// Sums of rows, of which some are not safe and some windows narrow.
struct Rows {
  static constexpr int heads = 3;
  static constexpr int queries = 5;
  static constexpr std::int64_t replicates = 23;
  static constexpr std::int64_t count = replicates * queries;

  Rows() {
    std::mt19937 random(17);
    const double huge = std::numeric_limits<double>::infinity();
    for (std::int64_t row = 0; row < count; ++row) {
      for (int h = 0; h < heads; ++h) {
        const double faults[] = {0.5, 0x1p+91, -huge, std::nan("")};
        const auto kind = random() % 40;
        weights[row].push_back(kind < 4 ? faults[kind] : 10.0);
        squares[row].push_back(kind == 4 ? 0.0 : kind < 12 ? 60.0 : 20.0);
      }
    }
  }

  bool is_unsafe(std::int64_t row, bool bounds) const {
    bool safe = true;
    for (int h = 0; h < heads; ++h) {
      const double w = weights[row][h], s = squares[row][h];
      safe = safe && w >= 1 && w <= 0x1p+90 && (bounds ? w * w >= 2 * s : s > 0);
    }
    return !safe;
  }
  unsigned narrow(std::int64_t row) const {
    unsigned sum = 0;
    for (int h = 0; h < heads; ++h) {
      sum += weights[row][h] * weights[row][h] < 2 * squares[row][h] ? 1 : 0;
    }
    return sum;
  }

  std::vector<double> weights[count], squares[count];
};

/// The same rows in the memory of a device.
class RowsOfBatch : public Cuda {
 protected:
  void TearDown() override {
    totals_ = Memory();
    taken_ = Memory();
    scratch_ = Memory();
    Cuda::TearDown();
  }
  FallbackArguments arguments(std::int64_t scratch_bytes = row_scratch_bytes(Rows::count)) {
    const TotalsLayout layout = {.heads = Rows::heads};
    totals_ = Memory(static_cast<std::uint64_t>(8 * Rows::count * layout.size()));
    taken_ = Memory(4 * Rows::count);
    scratch_ = Memory(static_cast<std::uint64_t>(scratch_bytes));
    for (std::int64_t row = 0; row < Rows::count; ++row) {
      for (int h = 0; h < Rows::heads; ++h) {
        double* sums = totals_.as<double>() + row * layout.size();
        sums[layout.weight(h)] = rows_.weights[row][h];
        sums[layout.square(h, h)] = rows_.squares[row][h];
      }
    }
    FallbackArguments a;
    a.weigh.totals = layout;
    a.weigh.queries.count = Rows::queries;
    a.totals = totals_.as<double>();
    a.taken = taken_.as<std::uint32_t>();
    a.scratch = {scratch_.as<void>(), scratch_bytes};
    a.min_sum = 1;
    return a;
  }

  Rows rows_;
  Stream stream_;
  Memory totals_, taken_, scratch_;
};

TEST_F(RowsOfBatch, UnsafeRowsAreListedInOrder) {
  for (const bool bounds : {false, true}) {
    FallbackArguments a = arguments();
    a.weigh.bounds_squares = bounds;
    std::vector<std::uint32_t> expected;
    for (std::int64_t row = 0; row < Rows::count; ++row) {
      if (rows_.is_unsafe(row, bounds)) expected.push_back(static_cast<std::uint32_t>(row));
    }
    ASSERT_GT(expected.size(), 10u);
    ASSERT_LT(expected.size(), std::size_t{Rows::count});
    const RowList list = list_unsafe(stream_, a, Rows::count);
    EXPECT_EQ(std::vector(list.rows, list.rows + list.count()), expected);
    for (std::int64_t row = 0; row < Rows::count; ++row) {
      EXPECT_EQ(a.taken[row], rows_.is_unsafe(row, bounds) ? 1u : 0u) << row;
    }
  }
}

TEST_F(RowsOfBatch, AListMayBeEmpty) {
  for (auto& weights : rows_.weights) weights.assign(Rows::heads, 10.0);
  for (auto& squares : rows_.squares) squares.assign(Rows::heads, 20.0);
  EXPECT_EQ(list_unsafe(stream_, arguments(), Rows::count).count(), 0u);
}

TEST_F(RowsOfBatch, WindowsAreAddedToTheirNodes) {
  for (const int node : {1, 8, 16, 512}) {
    for (const std::int64_t first : {0, 3, 40}) {
      FallbackArguments a = arguments();
      const std::int64_t nodes = (first + Rows::replicates - 1) / node + 1;
      const auto size = static_cast<std::size_t>(nodes * window_counters);
      std::vector<unsigned long long> counts(size, 100);
      std::vector<unsigned long long> expected(size, 100);
      for (std::int64_t row = 0; row < Rows::count; ++row) {
        a.taken[row] = static_cast<std::uint32_t>(row % 4);
        unsigned long long* of_node = &expected[static_cast<std::size_t>(
            (first + row / Rows::queries) / node * window_counters)];
        of_node[0] += row % 4 == 0 ? 0 : static_cast<unsigned long long>(row % 4 - 1);
        of_node[1] += rows_.narrow(row);
        of_node[2] += row % 4 == 0 ? 0 : 1;
      }
      a.windows = {.counts = counts.data(), .first = first, .node_replicates = node};
      count_windows(stream_, a, Rows::replicates);
      EXPECT_EQ(counts, expected) << "nodes of " << node << " from " << first;
    }
  }
}

TEST_F(Cuda, MoreRowsThanThreadBlocksTakeTheFallback) {
  const Plan plan =
      test::make_plan({.n = 3, .heads = 1, .queries = 1}, GaussianKernel{.bandwidth = 1e-9});
  const Block block = {.first = 0, .count = 1100, .node = 1024};
  std::atomic<std::uint64_t> fallback = 0;
  Options options;
  options.fallback_queries = &fallback;
  options.batch_replicates = 1100;
  const auto found = run(plan, block, options);
  EXPECT_EQ(fallback, 1100u);
  options.batch_replicates = 100;
  EXPECT_TRUE(same_bits(run(plan, block, options), found));
}

TEST_F(RowsOfBatch, WhatScratchMemoryLacksIsTakenForTheBatch) {
  const auto listed = [&](std::int64_t scratch_bytes) {
    const RowList list = list_unsafe(stream_, arguments(scratch_bytes), Rows::count);
    return std::vector(list.rows, list.rows + list.count());
  };
  const auto expected = listed(row_scratch_bytes(Rows::count));
  EXPECT_TRUE(stream_.unplanned.empty()) << "more than was planned";
  for (const std::int64_t little : {4 * Rows::count, std::int64_t{256}}) {
    EXPECT_EQ(listed(little), expected);
    EXPECT_FALSE(stream_.unplanned.empty());
  }
  // The next batch does not add to it, and a device without memory says so.
  EXPECT_EQ(listed(row_scratch_bytes(Rows::count)), expected);
  EXPECT_TRUE(stream_.unplanned.empty());
  const FallbackArguments a = arguments(256);
  control::set_memory(0);
  EXPECT_THROW(list_unsafe(stream_, a, Rows::count), OutOfMemory);
}

}  // namespace
}  // namespace headlab::emulated_cuda
