// SPDX-License-Identifier: Apache-2.0
/// \file Fixture of the tests of the CUDA backend, on a GPU and on emulated devices, and a record
/// of the kernels that were compared.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/worker.h"
#include "kernels/testing/agreement.h"
#include "kernels/testing/cuda_tolerance.h"
#include "kernels/testing/kernel_choice.h"
#include "kernels/testing/test_plans.h"
#if defined(HEADLAB_EMULATE_CUDA)
#include "kernels/cuda/emulator/control.h"
#include "kernels/cuda/emulator/emulator.h"
#endif

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Emulated, with few statistics on a device, so that small blocks have several segments.
inline Options test_options() {
  Options options;
#if defined(HEADLAB_EMULATE_CUDA)
  options.statistics_bytes = 1 << 17;
#endif
  return options;
}

inline Options in_batches(std::int64_t replicates) {
  Options options = test_options();
  options.batch_replicates = replicates;
  return options;
}

inline std::vector<Moments> run(const Plan& plan, const Block& block,
                                const Options& options = test_options()) {
  std::vector<Moments> out(block.nodes());
  make_cuda_backend(options)->worker(plan)->run(block, out);
  return out;
}

using test::same_bits;

/// What the comparisons of a test case with one choice of kernels found.
struct ComparedKernel {
  std::uint64_t compared = 0;   ///< replicates
  std::uint64_t queries = 0;    ///< of them
  std::uint64_t unbounded = 0;  ///< queries without a bound, see ExpectedStatistics
  std::uint64_t fallback = 0;   ///< queries that took the fallback
  double over_tolerance = 0;    ///< the largest error, in tolerances
  double relative = 0;          ///< see Deviation
};
/// By what they are called, as the members of a JSON object.
inline std::map<std::string, ComparedKernel>& compared_kernels() {
  static std::map<std::string, ComparedKernel> kernels;
  return kernels;
}
inline void record(const KernelChoice& choice, const ComparedKernel& found) {
  ComparedKernel& all = compared_kernels()[json_of(choice)];
  all.compared += found.compared;
  all.queries += found.queries;
  all.unbounded += found.unbounded;
  all.fallback += found.fallback;
  all.over_tolerance = std::max(all.over_tolerance, found.over_tolerance);
  all.relative = std::max(all.relative, found.relative);
}

/// Prints a line for each choice of kernels, which tools/check/gpu-check collects, and forgets
/// them.
inline void print_compared_kernels() {
  for (const auto& [name, found] : compared_kernels()) {
    std::printf(
        "[ COMPARED ] {%s, \"compared\": %llu, \"queries\": %llu, \"unbounded_queries\": %llu, "
        "\"fallback_queries\": %llu, \"error_over_tolerance\": %.3g, \"relative_error\": %.3g}\n",
        name.c_str(), static_cast<unsigned long long>(found.compared),
        static_cast<unsigned long long>(found.queries),
        static_cast<unsigned long long>(found.unbounded),
        static_cast<unsigned long long>(found.fallback), std::min(found.over_tolerance, 1e300),
        std::min(found.relative, 1e300));
  }
  compared_kernels().clear();
}

/// Cases on a GPU, skipped where there is none, or on emulated devices.
class Cuda : public ::testing::Test {
 protected:
#if defined(HEADLAB_EMULATE_CUDA)
  void SetUp() override {
    control::reset();
  }
  void TearDown() override {
    print_compared_kernels();
    set_order(Order::ascending);
    control::reset();
    EXPECT_EQ(control::bytes_in_use(), 0u) << "device memory was not given back";
  }
  static void set_order(Order order) {
    set_thread_order(order);
    set_block_order(order);
  }
#else
  void SetUp() override {
    try {
      devices_ = usable_devices();
    } catch (const Unavailable& missing) {
      GTEST_SKIP() << missing.what();
    }
  }
  void TearDown() override {
    std::uint64_t compared = 0;
    double relative = 0, over_tolerance = 0;
    for (const auto& [name, found] : compared_kernels()) {
      compared += found.compared;
      relative = std::max(relative, found.relative);
      over_tolerance = std::max(over_tolerance, found.over_tolerance);
    }
    if (compared > 0) {
      RecordProperty("compared", std::to_string(compared));
      RecordProperty("largest_relative_error", std::to_string(1e6 * relative) + "e-6");
      RecordProperty("largest_error_over_tolerance", std::to_string(over_tolerance));
    }
    print_compared_kernels();
  }

  std::vector<cuda::GpuStatus> devices_;
#endif
  /// Expects the same bits in batches of these sizes and from run to run, where they are emulated
  /// with threads and blocks in another order.
  static void expect_bits_of_any_batch_and_order(const Plan& plan, const Block& block,
                                                 std::initializer_list<std::int64_t> batches) {
    const auto expected = run(plan, block);
    for (const std::int64_t batch : batches) {
      EXPECT_TRUE(same_bits(run(plan, block, in_batches(batch)), expected))
          << "batch " << batch << ' ' << test::text_of(plan);
    }
#if defined(HEADLAB_EMULATE_CUDA)
    set_order(Order::descending);
#endif
    EXPECT_TRUE(same_bits(run(plan, block), expected)) << test::text_of(plan);
#if defined(HEADLAB_EMULATE_CUDA)
    set_order(Order::ascending);
#endif
  }
};

/// The backend of the agreement suite, see agreement_fixture.h.
class TestedCuda : public Cuda {
 protected:
  /// constant: exp2 and the products of a term (about 10), then for a key the sum over a tile of 32
  /// queries and over the tiles of up to 96, and the sum of a tile of 64 keys in four lanes.
  /// of_exponent: as for the cpu backend.
  static constexpr test::Rounding fit_rounding = {.constant = 10 + (32 + 3) + (16 + 2),
                                                  .of_exponent = 8};

  template <class Check>
  void in_every_way(const Check& check) {
    check();
  }
  template <class Check>
  void on_every_path(const Check& check) {
    check();
#if defined(HEADLAB_EMULATE_CUDA)
    // Without shared memory for a tile every query takes the fallback.
    SCOPED_TRACE("fallback");
    options_.limits.shared_bytes = 0;
    check();
    options_.limits = {};
#endif
  }
  template <class Check>
  void in_every_way_of_fits(const Check& check) {
    // Few blocks of threads, so that each has several tiles of keys, and as many as it gets.
    for (const std::int64_t blocks : {std::int64_t{8}, Options{}.fit_blocks}) {
      SCOPED_TRACE(std::to_string(blocks) + " blocks");
      options_.fit_blocks = blocks;
      check();
    }
  }
  std::unique_ptr<Backend> backend() const {
    return make_cuda_backend(options_);
  }
  Moments compute(const Plan& plan, std::uint64_t replicate) {
    fallback_ = 0;
    Options counting = options_;
    counting.fallback_queries = &fallback_;
    return test::one_replicate(*make_cuda_backend(counting), plan, replicate);
  }
  /// Queries of the replicate computed last that took the fallback.
  std::uint64_t repaired() const {
    return fallback_;
  }
  /// True where every query takes it.
  bool repairs_all(const Plan& plan) const {
    return plan_launch(plan, options_.limits).fallback_only;
  }
  std::vector<float> design(const Plan& plan, std::uint64_t replicate) const {
    return draw_design(plan, replicate, options_);
  }
  test::ExpectedStatistics expected(const Plan& plan, std::uint64_t replicate) const {
    const LaunchPlan launch = plan_launch(plan, options_.limits);
    return RoundingBounds(plan, launch, replicate).all();
  }
  void record_comparison(const Plan& plan, const test::ExpectedStatistics& expected,
                         const test::Deviation& deviation) const {
    const auto unbounded = std::ranges::count(expected.bounded, false);
    record(choice_of(plan_launch(plan, options_.limits)),
           {.compared = 1,
            .queries = expected.bounded.size(),
            .unbounded = static_cast<std::uint64_t>(unbounded),
            .fallback = fallback_,
            .over_tolerance = deviation.over_tolerance,
            .relative = deviation.relative});
  }
  void record_fit(bool separate, double over_tolerance) const {
    record({.form = "fit",
            .keys = separate ? "matrices of their own" : "one matrix",
            .sums = "estimates and gradients",
            .passes = "two"},
           {.compared = 1, .over_tolerance = over_tolerance});
  }

  Options options_ = test_options();

 private:
  std::atomic<std::uint64_t> fallback_ = 0;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
