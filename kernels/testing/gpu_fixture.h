// SPDX-License-Identifier: Apache-2.0
/// \file Fixture of the tests of the CUDA backend on a GPU.
#pragma once

#include <algorithm>
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

  /// Compares the statistics of one replicate with the reference.
  void compare(const Plan& plan, std::uint64_t replicate, const Options& options = {}) {
    EXPECT_TRUE(agrees(plan, replicate, options)) << text_of(plan);
  }

  std::vector<DeviceInfo> devices_;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
