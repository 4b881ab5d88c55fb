// SPDX-License-Identifier: Apache-2.0
/// \file Fixture of the tests of the CUDA backend on a GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/runtime.h"
#include "kernels/testing/cuda_agreement.h"
#include "kernels/testing/test_plans.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

inline constexpr Estimator estimators[] = {Estimator::conditional, Estimator::plain};
inline constexpr MomentMode modes[] = {MomentMode::pairwise, MomentMode::aggregate};

inline std::string text_of(const Plan& plan) {
  return "n " + std::to_string(plan.n) + " d " + std::to_string(plan.d) + " H " +
         std::to_string(plan.heads) + " k " + std::to_string(plan.k) + " Q " +
         std::to_string(plan.queries) + " design " + std::to_string(plan.design.index()) +
         " regression " + std::to_string(plan.regression.index()) + " noise " +
         std::to_string(plan.noise.index()) + " kernel " + std::to_string(plan.kernel.index()) +
         (plan.estimator == Estimator::plain ? " plain" : " conditional") +
         (plan.moments == MomentMode::pairwise ? " pairwise" : " aggregate");
}

inline std::vector<Moments> run(const Plan& plan, const Block& block, const Options& options = {}) {
  std::vector<Moments> out(block.nodes());
  make_cuda_backend(options)->worker(plan)->run(block, out);
  return out;
}

/// True where two results are the same bits; NaN is never the same.
inline ::testing::AssertionResult same_bits(const std::vector<Moments>& a,
                                            const std::vector<Moments>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "different numbers of nodes";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i].count == b[i].count && a[i].windows == b[i].windows && a[i].mean == b[i].mean &&
          a[i].comoment == b[i].comoment)) {
      return ::testing::AssertionFailure() << "node " << i << " differs";
    }
  }
  return ::testing::AssertionSuccess();
}

/// Cases on a GPU, skipped where there is none.
class GpuBackend : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      devices_ = usable_devices();
    } catch (const Unavailable& missing) {
      GTEST_SKIP() << missing.what();
    }
  }
  void TearDown() override {
    if (compared_ > 0) {
      RecordProperty("compared", compared_);
      RecordProperty("largest_relative_error", std::to_string(1e6 * max_error_) + "e-6");
    }
  }

  /// Compares the statistics of one replicate with the reference, and keeps the largest error
  /// relative to the largest statistic of its kind.
  void compare(const Plan& plan, std::uint64_t replicate, const Options& options = {}) {
    const std::vector<double> statistics =
        test::one_replicate(*make_cuda_backend(options), plan, replicate).mean;
    std::vector<double> expected;
    EXPECT_TRUE(
        test::close_to_reference(plan, replicate, statistics, test::cuda_rounding(plan), &expected))
        << text_of(plan);
    const MomentLayout layout = plan.layout();
    double scale[2] = {};
    auto kind = [&](std::size_t i) { return i % layout.per_query() >= layout.noise_offset(); };
    for (std::size_t i = 0; i < expected.size(); ++i) {
      scale[kind(i)] = std::max(scale[kind(i)], std::abs(expected[i]));
    }
    for (std::size_t i = 0; i < expected.size() && scale[kind(i)] > 0; ++i) {
      const double error = std::abs(statistics[i] - expected[i]) / scale[kind(i)];
      if (!(error <= max_error_)) max_error_ = std::isnan(error) ? HUGE_VAL : error;
    }
    ++compared_;
  }

  std::vector<DeviceInfo> devices_;

 private:
  int compared_ = 0;
  double max_error_ = 0;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
