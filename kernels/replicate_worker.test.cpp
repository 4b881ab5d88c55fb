// SPDX-License-Identifier: Apache-2.0
#include "kernels/replicate_worker.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/backends.h"
#include "kernels/kernel_laws.h"
#include "kernels/stack/stack.h"
#include "kernels/statistics/stopping.h"
#include "kernels/testing/mechanisms.h"
#include "kernels/testing/test_plans.h"

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

/// Two plans on common draws, of which the first alone has sample sizes.
class SampleSizesWorker : public NumbersWorker {
 public:
  using NumbersWorker::NumbersWorker;
  static double sample_size(std::uint64_t replicate) {
    return std::floor(9 * std::abs(std::cos(static_cast<double>(replicate))));
  }

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts> windows) override {
    NumbersWorker::replicate(number, statistics, windows);
    sample_sizes()[0] = sample_size(number);
  }
};

TEST(ReplicateWorker, FindsTheExtremesOfEachNode) {
  const Plan pairwise = test::make_plan({}, GaussianKernel{.bandwidth = 1});
  const Plan aggregate =
      test::make_plan({}, GaussianKernel{.bandwidth = 1}, Estimator::plain, MomentMode::aggregate);
  const Plan* const plans[] = {&pairwise, &aggregate};
  SampleSizesWorker worker(Plans{plans});
  const std::vector<Block> blocks = {{.first = 3, .count = 1, .node = 1},
                                     {.first = 16, .count = 21},
                                     {.first = 64, .count = 128, .node = 64}};
  for (const Block& block : blocks) {
    std::vector<Moments> out(2 * block.nodes());
    worker.run(block, out);
    for (std::size_t p = 0; p < 2; ++p) {
      const MomentLayout layout = plans[p]->layout();
      for (std::uint64_t i = 0; i < block.nodes(); ++i) {
        const auto node = static_cast<std::uint64_t>(block.node);
        const std::uint64_t first = block.first + i * node;
        Extremes expected;
        for (std::uint64_t r = first; r < std::min(first + node, block.first + block.count); ++r) {
          double error = 0;
          std::size_t at = 0;
          for (std::size_t q = 0; q < 5; ++q, at += layout.per_query()) {
            const auto statistic = [&](std::size_t s) { return value(r, p, at + s); };
            double ensemble = 0;
            double noise = 0;
            for (std::size_t g = 0; g < 3; ++g) {
              ensemble += pairwise.head_weights[g] * statistic(g);
              for (std::size_t l = 0; p == 0 && l < 3; ++l) {
                noise += pairwise.head_weights[g] * pairwise.head_weights[l] *
                         statistic(3 + layout.pair(std::min(g, l), std::max(g, l)));
              }
            }
            if (p == 1) ensemble = statistic(3);
            error += (std::pow(ensemble - pairwise.truth[q], 2) + noise) / 5;
          }
          expected.max_error.add({error, r});
          expected.min_sample_size->add({SampleSizesWorker::sample_size(r), r});
        }
        const Extremes& found = *out[p * block.nodes() + i].extremes;
        const std::vector<Extreme>& errors = found.max_error.all();
        ASSERT_EQ(errors.size(), expected.max_error.all().size());
        for (std::size_t e = 0; e < errors.size(); ++e) {
          EXPECT_EQ(errors[e].replicate, expected.max_error.all()[e].replicate);
          EXPECT_NEAR(errors[e].key, expected.max_error.all()[e].key, 1e-12);
        }
        EXPECT_EQ(found.min_sample_size.has_value(), p == 0);
        if (p == 0) {
          EXPECT_EQ(found.min_sample_size, expected.min_sample_size);
        }
      }
    }
  }
  NumbersWorker without_plans(layouts);
  std::vector<Moments> out(layouts.size());
  without_plans.run({.first = 0, .count = 1, .node = 1}, out);
  EXPECT_EQ(out[0].extremes, nullptr);
}

/// Checks what a block of two replicates tells of itself: it never falls, and in no step rises by
/// more than `step` of a replicate. The ends of nested parts are rounded a few times.
void expect_steady_progress(const std::string& backend, Plans plans, double step) {
  std::atomic<double> done = 0;
  std::vector<double> told;  // at each stop point
  const StopScope listening([&] {
    told.push_back(done);
    return false;
  });
  const WorkScope work(done, 2);
  std::vector<Moments> out(2 * plans.size());
  make_backend(backend)->worker(plans)->run({.first = 2, .count = 2, .node = 1}, out);
  told.push_back(2);
  double last = 0;
  for (const double now : told) {
    EXPECT_TRUE(now >= last - 0x1p-48) << backend << " " << last << " " << now;
    EXPECT_TRUE(now <= last + step) << backend << " " << last << " " << now;
    last = now;
  }
}

TEST(ReplicateWorker, TellsHowMuchOfAReplicateIsDone) {
  std::vector<test::NamedStage> stages = test::all_stages();
  stages.push_back({"none", [](Plan&) {}});
  for (const test::NamedStage& stage : stages) {
    for (const Estimator estimator : test::estimators) {
      SCOPED_TRACE(stage.name + (estimator == Estimator::plain ? ", plain" : ", conditional"));
      const auto plan_of = [&](const test::Shape& shape) {
        Plan plan = test::make_plan(shape, GaussianKernel{.bandwidth = 0.5}, estimator);
        stage.set(plan);
        return plan;
      };
      // Keys of so many heads and points are several slabs; a window may be within one.
      const test::Shape shape = {.n = 200000, .heads = 24, .k = 4, .queries = 1};
      const Plan large = plan_of(shape);
      const double slab = large.mechanism.seen.empty() ? 0.3 : 1;
      const Plan* const alone[] = {&large};
      expect_steady_progress("cpu", alone, slab);
      // With another one whose tokens are others.
      Plan other = test::make_plan(shape, GaussianKernel{.bandwidth = 0.5}, estimator);
      other.mechanism.merge = {.stride = 7, .gate = {}};
      const Plan* const both[] = {&large, &other};
      expect_steady_progress("cpu", both, slab);

      const Plan small = plan_of({.n = 2000});
      const Plan* const of_reference[] = {&small, &small};
      expect_steady_progress("reference", of_reference, 0.3);
    }
  }
}

TEST(ReplicateWorker, TellsHowMuchOfAStackIsDone) {
  Plan plan;
  plan.n = 12;
  plan.d = 3;
  plan.seed = 4;
  plan.design = NormalDesign{.dim = 3}.sampler(plan.table);
  Stack stack{.layers = 1, .heads = 4, .maps = GaussianMaps{.k = 2, .value_dim = 2}};
  plan.stack = std::make_shared<const Stack>(stack);
  Plan pruned = plan;
  stack.layers = 3;
  std::get<GaussianMaps>(stack.maps).samples = 2;
  pruned.stack = std::make_shared<const Stack>(stack);
  const Plan* const alone[] = {&plan};
  const Plan* const both[] = {&plan, &pruned};
  for (const std::string backend : {"reference", "cpu"}) {
    expect_steady_progress(backend, alone, 0.15);
    expect_steady_progress(backend, both, 0.15);
  }
}

}  // namespace
}  // namespace headlab
