// SPDX-License-Identifier: Apache-2.0
/// \file Fixture of the agreement suite: tests that compare the backend of a program of tests with
/// the reference. It is compiled for cpu, for the kernels of cuda on the host and for a GPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/testing/agreement.h"
#include "kernels/testing/test_plans.h"
#if defined(HEADLAB_EMULATE_CUDA) || defined(HEADLAB_TEST_GPU)
#include "kernels/testing/device_fixture.h"
#else
#include "kernels/cpu/backend.h"
#include "kernels/cpu/draws.h"
#include "kernels/testing/every_target.h"
#endif

namespace headlab::test {

#if defined(HEADLAB_EMULATE_CUDA) || defined(HEADLAB_TEST_GPU)
using Tested = HEADLAB_CUDA_NAMESPACE::TestedCuda;
#else
class Tested : public ::testing::Test {
 protected:
  /// constant: m(X), the value less its centre, exp2 and the product with the value (about 8
  /// together), and the float32 sums over a block, at most 64 additions in a lane and log2 16
  /// across the lanes. of_exponent: r^2 is a sum of k squares of rounded differences, scaled twice
  /// (2 + 2 + k/2), and the projected key carries a sum of d products; both are bounded by the
  /// exponent of absolute values.
  static constexpr Rounding rounding = {.constant = 8 + 64 + 4, .of_exponent = 8};
  /// constant: exp2 and the products of a term (about 8), and float32 sums over a panel, 128
  /// additions in a lane of the narrowest vectors, and across the lanes.
  static constexpr Rounding fit_rounding = {.constant = 8 + 128 + 4, .of_exponent = 8};

  /// Runs a check in every way that the backend may compute, here with every set of instructions.
  template <class Check>
  static void in_every_way(const Check& check) {
    on_every_target(check);
  }
  /// Also on what emulated kernels take where a query's sums are not safe.
  template <class Check>
  static void on_every_path(const Check& check) {
    on_every_target(check);
  }
  template <class Check>
  static void in_every_way_of_fits(const Check& check) {
    on_every_target(check);
  }
  static std::unique_ptr<Backend> backend() { return make_cpu_backend(); }
  static Moments compute(const Plan& plan, std::uint64_t replicate) {
    return one_replicate(*make_cpu_backend(), plan, replicate);
  }
  static std::uint64_t repaired() { return 0; }
  static bool repairs_all(const Plan&) { return false; }
  static std::vector<float> design(const Plan& plan, std::uint64_t replicate) {
    return draw_design_cpu(plan, replicate);
  }
  static ExpectedStatistics expected(const Plan& plan, std::uint64_t replicate) {
    return expected_statistics(plan, replicate, rounding);
  }
  static void record_comparison(const Plan&, const ExpectedStatistics&, const Deviation&) {}
  static void record_fit(bool, double) {}
};
#endif

class Agreement : public Tested {
 protected:
  /// Expects the statistics and window counts of the reference for one replicate, which it returns.
  Moments expect_agreement(const Plan& plan, std::uint64_t replicate = 2) {
    WindowCounts windows;
    const Moments found = expect_statistics(plan, replicate, &windows);
    EXPECT_EQ(found.windows, windows) << text_of(plan);
    return found;
  }
  /// Without the counts, which rounding changes where a window is as narrow as the limit.
  Moments expect_statistics(const Plan& plan, std::uint64_t replicate = 2,
                            WindowCounts* windows = nullptr) {
    const Moments found = compute(plan, replicate);
    const ExpectedStatistics exact = expected(plan, replicate);
    const Deviation deviation = deviation_of(plan.layout(), exact, found.mean);
    record_comparison(plan, exact, deviation);
    EXPECT_LE(deviation.over_tolerance, 1) << deviation.worst << ' ' << text_of(plan);
    if (windows != nullptr) *windows = exact.windows;
    return found;
  }
  /// The negative control: true where statistics are not those of a replicate of the plan.
  bool is_far(const Plan& plan, std::uint64_t replicate, const std::vector<double>& statistics) {
    return deviation_of(plan.layout(), expected(plan, replicate), statistics).over_tolerance > 1;
  }
};

}  // namespace headlab::test
