// SPDX-License-Identifier: Apache-2.0
// Stages of a mechanism on the CPU. All of them, alone and in pairs: stage_agreement.test.cpp.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/tiling.h"
#include "kernels/reference/backend.h"
#include "kernels/testing/agreement_fixture.h"
#include "kernels/testing/mechanisms.h"

namespace headlab {
namespace {

using CpuMechanism = test::Agreement;

/// The mean cosine of the heads' weights on the responses of all points, at every query: a token's
/// weight times the share that each of its points has in it.
std::vector<double> alignment_of_responses(const Plan& plan, std::uint64_t replicate) {
  const TrainingSet tokens = tokens_of(plan, draw_training_set(plan, replicate));
  const Merge& merge = plan.mechanism.merge;
  std::vector<double> alignments;
  for (int q = 0; q < plan.queries; ++q) {
    std::vector<std::vector<double>> of_points;
    for (int h = 0; h < plan.heads; ++h) {
      WindowCounts windows;
      const std::vector<double> weights = nw_weights(plan, tokens, h, q, windows);
      std::vector<double>& on_responses = of_points.emplace_back();
      for (std::uint64_t i = 0; i < plan.n; ++i) {
        const std::uint64_t first = i / merge.stride * merge.stride;
        const std::uint64_t points = std::min(merge.stride, plan.n - first);
        on_responses.push_back(weights[i / merge.stride] * merge.weight(points));
      }
    }
    const auto dot = [&](std::size_t h, std::size_t l) {
      double sum = 0;
      for (std::size_t i = 0; i < plan.n; ++i) sum += of_points[h][i] * of_points[l][i];
      return sum;
    };
    double sum = 0;
    for (std::size_t h = 0; h < of_points.size(); ++h) {
      for (std::size_t l = 0; l < h; ++l) sum += dot(h, l) / std::sqrt(dot(h, h) * dot(l, l));
    }
    alignments.push_back(sum / static_cast<double>(plan.heads * (plan.heads - 1) / 2));
  }
  return alignments;
}

TEST_F(CpuMechanism, TheAlignmentIsThatOfWeightsOnResponses) {
  const auto reference = make_reference_backend();
  const auto cpu = make_cpu_backend();
  for (const std::uint64_t n : {25, 26, 29, 301}) {
    for (const std::optional<double> gate : {std::optional<double>(), std::optional(0.4)}) {
      for (const bool varies : {false, true}) {
        for (const double bandwidth : {0.8, 0.05}) {
          Plan plan = test::make_plan({.n = n}, GaussianKernel{.bandwidth = bandwidth});
          plan.mechanism.merge = {.stride = 5, .gate = gate};
          if (varies) test::vary_noise(plan);
          const MomentLayout layout = plan.layout();
          // The last token counts in some replicates only.
          for (std::uint64_t replicate = 0; replicate < 12; ++replicate) {
            const auto exact = alignment_of_responses(plan, replicate);
            const Moments slow = test::one_replicate(*reference, plan, replicate);
            const Moments fast = test::one_replicate(*cpu, plan, replicate);
            const double tolerance =
                test::eps32 *
                (40 + 8 * test::largest_exponent(plan, draw_training_set(plan, replicate)));
            for (std::size_t q = 0; q < exact.size(); ++q) {
              const std::size_t at = q * layout.per_query() + layout.alignment_offset();
              EXPECT_NEAR(slow.mean[at], exact[q], 1e-12) << n;
              EXPECT_NEAR(fast.mean[at], exact[q], 2 * tolerance) << n << ", query " << q;
            }
          }
        }
      }
    }
  }
}

TEST_F(CpuMechanism, ALargeTopIsFoundByItsDigits) {
  for (const KernelLaw& kernel :
       {KernelLaw(GaussianKernel{.bandwidth = 3}), KernelLaw(SoftmaxKernel{.temperature = 4})}) {
    Plan plan = test::make_plan({.n = 9001, .queries = 2}, kernel);
    plan.mechanism.keep = {.rule = Keep::Rule::top, .top = {max_listed, max_listed + 1, 8999}};
    const Moments node = expect_agreement(plan);
    // The control: one more or less would be seen.
    plan.mechanism.keep.top[2] = 8000;
    EXPECT_TRUE(is_far(plan, 2, node.mean));
  }
  // Equal numbers are all kept: half of the points coincide.
  Plan ties = test::make_plan({.n = 10000, .d = 1, .heads = 1, .k = 1, .queries = 1},
                              GaussianKernel{.bandwidth = 1});
  ties.design = FileDesign{.rows = {{0.5}, {-0.25}}}.sampler(ties.table);
  for (const std::uint64_t top : {3, 4900}) {
    ties.mechanism.keep = {.rule = Keep::Rule::top, .top = {top}};
    expect_agreement(ties);
    ties.mechanism.keep = {.rule = Keep::Rule::block, .top = {top}, .block = 2};
    expect_agreement(ties);
  }
}

TEST_F(CpuMechanism, MemoryOfKeepDoesNotGrowWithTheTrainingSet) {
  const auto bytes = [](const Keep& keep, std::uint64_t n) {
    Plan plan = test::make_plan({.n = n, .heads = 2}, GaussianKernel{});
    plan.mechanism.keep = keep;
    plan.mechanism.keep.top = {keep.rule == Keep::Rule::block ? 4 : n / 10, 4};
    return make_cpu_backend()->worker_bytes(plan);
  };
  for (const Keep& keep :
       {Keep{.rule = Keep::Rule::top}, Keep{.rule = Keep::Rule::block, .block = 16},
        Keep{.rule = Keep::Rule::block, .block = 16, .pooled = true}}) {
    EXPECT_EQ(bytes(keep, 1'000'000), bytes(keep, 1'000'000'000));
    EXPECT_LT(bytes(keep, 1'000'000), 20u << 20);
  }
}

TEST_F(CpuMechanism, AWindowOfAHugeTrainingSetIsDrawnAlone) {
  // Every slab visited would take minutes.
  Plan plan = test::make_plan({.n = std::uint64_t{1} << 39, .queries = 2},
                              GaussianKernel{.bandwidth = 0.6});
  for (std::uint64_t h = 0; h < 3; ++h) {
    plan.mechanism.seen.push_back(seen_tokens(plan.n, 40 + h, 5, h));
  }
  const Moments far = test::one_replicate(*make_cpu_backend(), plan, 2);
  for (const double value : far.mean) EXPECT_TRUE(std::isfinite(value));
  // A head of one token has the noise of one point.
  plan.mechanism.seen.assign(3, seen_tokens(plan.n, 1, 0, 0));
  const Moments one = test::one_replicate(*make_cpu_backend(), plan, 2);
  EXPECT_DOUBLE_EQ(one.mean[plan.layout().noise_offset()], 0.25);
  EXPECT_NE(far.mean[plan.layout().noise_offset()], 0.25);
}

TEST_F(CpuMechanism, ConditionsHaveTheBitsTogetherThatTheyHaveAlone) {
  const auto backend = make_cpu_backend();
  for (const Estimator estimator : test::estimators) {
    for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = 0.6}),
                                    KernelLaw(SoftmaxKernel{.temperature = 0.5})}) {
      const Plan plain = test::make_plan({.n = 9001, .queries = 2}, kernel, estimator);
      std::vector<Plan> all;
      for (const test::NamedStage& stage : test::all_stages()) {
        all.push_back(plain);
        stage.set(all.back());
      }
      all.push_back(plain);
      // What alone tells heads on one subspace apart.
      const auto add = [&](const auto& change) {
        all.push_back(plain);
        change(all.back().mechanism);
      };
      for (const std::uint64_t window : {3000, 3001}) {
        add([&](Mechanism& of) { of.seen.assign(3, seen_tokens(plain.n, window, 0, 0)); });
        add([&](Mechanism& of) { of.seen.assign(3, seen_tokens(plain.n, 3000, window, 1)); });
      }
      for (const double ratio : {0.25, 0.5}) {
        add([&](Mechanism& of) { of.keep = {.rule = Keep::Rule::ratio, .ratio = ratio}; });
      }
      for (const std::uint64_t top : {7, 8, 5000}) {
        add([&](Mechanism& of) { of.keep = {.rule = Keep::Rule::top, .top = {top, top, top}}; });
      }
      for (const std::uint64_t block : {16, 17}) {
        for (const bool pooled : {false, true}) {
          add([&](Mechanism& of) {
            of.keep = {
                .rule = Keep::Rule::block, .top = {9, 9, 9}, .block = block, .pooled = pooled};
          });
          add([&](Mechanism& of) {
            of.levels.weights = {0.5, 0.3, 0.2};
            of.keep = {
                .rule = Keep::Rule::block, .top = {9, 9, 9}, .block = block, .pooled = pooled};
          });
        }
      }
      test::expect_same_bits_together(*backend, all, {.first = 3, .count = 1, .node = 1});
    }
  }
}

}  // namespace
}  // namespace headlab
