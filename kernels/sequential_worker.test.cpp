// SPDX-License-Identifier: Apache-2.0
#include "kernels/sequential_worker.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

/// The number of training points in every moment.
class CountingWorker : public Worker {
 public:
  explicit CountingWorker(const Plan& plan) : plan_(plan) {}
  void run(const Block& block, std::span<Moments> out) override {
    ASSERT_EQ(out.size(), block.nodes());
    for (Moments& node : out) node.mean = {static_cast<double>(plan_.n)};
  }

 private:
  const Plan& plan_;
};

TEST(SequentialWorker, GivesEachPlanItsNodes) {
  Plan a, b, c;
  a.n = 10;
  b.n = 20;
  c.n = 30;
  const std::vector<const Plan*> plans = {&a, &b, &c};
  auto one = [](const Plan& plan) { return std::make_unique<CountingWorker>(plan); };
  std::vector<Moments> out(6);
  make_sequential_worker(plans, one)->run({.first = 0, .count = 16}, out);
  std::vector<double> seen;
  for (const Moments& node : out) seen.push_back(node.mean.at(0));
  EXPECT_EQ(seen, (std::vector<double>{10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(sequential_worker_bytes(plans, [](const Plan& plan) { return plan.n; }), 60u);
}

}  // namespace
}  // namespace headlab
