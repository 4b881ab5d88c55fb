// SPDX-License-Identifier: Apache-2.0
#include "kernels/replicate_worker.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

/// A number that replicate, plan and statistic decide, with digits enough to be rounded in sums.
double value(std::uint64_t replicate, std::size_t plan, std::size_t statistic) {
  return std::sin(1.0 + static_cast<double>(replicate) * 0.7 + static_cast<double>(plan) * 0.11 +
                  static_cast<double>(statistic) * 3.3);
}

class NumbersWorker : public ReplicateWorker {
 public:
  using ReplicateWorker::ReplicateWorker;

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows) override {
    for (std::size_t p = 0; p < statistics.size(); ++p) {
      for (std::size_t i = 0; i < statistics[p].size(); ++i) statistics[p][i] = value(number, p, i);
      windows[p].empty += p + 1;
      windows[p].narrow += number;
    }
  }
};

const std::vector<MomentLayout> layouts = {
    {.queries = 2, .heads = 3, .mode = MomentMode::pairwise, .conditional = true},
    {.queries = 5, .heads = 2, .mode = MomentMode::aggregate, .conditional = false},
};

/// The moments of replicates first .. first + count - 1 of plan p, leaves merged as siblings.
Moments expected(std::size_t p, std::uint64_t first, std::uint64_t count) {
  std::vector<Moments> leaves;
  for (std::uint64_t at = first; at < first + count; at += leaf_replicates) {
    const std::uint64_t end = std::min(at + leaf_replicates, first + count);
    std::vector<double> statistics;
    Moments& leaf = leaves.emplace_back();
    for (std::uint64_t r = at; r < end; ++r) {
      for (std::size_t i = 0; i < layouts[p].statistics(); ++i) {
        statistics.push_back(value(r, p, i));
      }
      leaf.windows.add({.empty = p + 1, .narrow = r});
    }
    leaf_moments(layouts[p], statistics, static_cast<int>(end - at), leaf);
  }
  return merge_siblings(layouts[p], leaves);
}

TEST(ReplicateWorker, MergesTheLeavesOfEachPlanAsSiblings) {
  NumbersWorker worker(layouts);
  const std::vector<Block> blocks = {
      {.first = 3, .count = 1, .node = 1},
      {.first = 0, .count = 5, .node = 1},
      {.first = 8, .count = 8},
      {.first = 16, .count = 21},
      {.first = 64, .count = 64, .node = 16},
      {.first = 256, .count = 512, .node = 256},
      {.first = 32, .count = 32, .node = 32},
  };
  for (const Block& block : blocks) {
    std::vector<Moments> out(layouts.size() * block.nodes());
    worker.run(block, out);
    for (std::size_t p = 0; p < layouts.size(); ++p) {
      for (std::uint64_t i = 0; i < block.nodes(); ++i) {
        const auto node = static_cast<std::uint64_t>(block.node);
        const Moments& moments = out[p * block.nodes() + i];
        const Moments exact =
            expected(p, block.first + i * node, std::min(node, block.count - i * node));
        EXPECT_EQ(moments.count, exact.count);
        EXPECT_EQ(moments.mean, exact.mean);
        EXPECT_EQ(moments.comoment, exact.comoment);
        EXPECT_EQ(moments.windows, exact.windows);
      }
    }
  }
}

}  // namespace
}  // namespace headlab
