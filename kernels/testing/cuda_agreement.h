// SPDX-License-Identifier: Apache-2.0
/// \file Comparison of the CUDA backend with the reference, on a GPU or emulated, and a record of
/// the kernels that were compared.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/kernel_choice.h"
#include "kernels/testing/agreement.h"
#include "kernels/testing/cuda_tolerance.h"

namespace headlab::test {

/// Of estimates and gradients of heads that are learned. constant: exp2 and the products of a term
/// (about 10), then for a key the sum over a tile of 32 queries and over the tiles of up to 96, and
/// the sum of a tile of 64 keys in four lanes. of_exponent: as for the cpu backend.
inline constexpr Rounding cuda_fit_rounding() {
  return {.constant = 10 + (32 + 3) + (16 + 2), .of_exponent = 8};
}

}  // namespace headlab::test

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// How statistics differ from the reference.
struct Deviation {
  double over_tolerance = 0;  ///< the largest error, in tolerances; infinite of NaN
  double relative = 0;        ///< where bounded, relative to the largest statistic of its kind
  std::string worst;          ///< in words
};

inline Deviation deviation_of(const Plan& plan, const ExpectedStatistics& expected,
                              const std::vector<double>& statistics) {
  const MomentLayout layout = plan.layout();
  const auto kind = [&](std::size_t i) { return i % layout.per_query() >= layout.noise_offset(); };
  double scale[2] = {};
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    scale[kind(i)] = std::max(scale[kind(i)], std::abs(expected.values[i]));
  }
  Deviation found;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double error = std::abs(statistics[i] - expected.values[i]);
    const double tolerance = expected.tolerances[i];
    const double over = error == 0 ? 0 : error / tolerance;
    if (expected.bounded[i / layout.per_query()] && scale[kind(i)] > 0) {
      found.relative = std::max(found.relative, error / scale[kind(i)]);
    }
    if (over <= found.over_tolerance) continue;
    found.over_tolerance = std::isnan(over) ? HUGE_VAL : over;
    std::ostringstream text;
    text << "statistic " << i % layout.per_query() << " of query " << i / layout.per_query() << ": "
         << statistics[i] << ", reference " << expected.values[i] << ", error " << error
         << ", tolerance " << tolerance;
    found.worst = text.str();
  }
  return found;
}

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

/// True where statistics lie as near to the reference as rounding explains. NaN is never near.
/// \param fallback queries that took the fallback, for the record
inline ::testing::AssertionResult close_to_reference(const Plan& plan, std::uint64_t replicate,
                                                     const std::vector<double>& statistics,
                                                     const LaunchLimits& limits = {},
                                                     std::uint64_t fallback = 0) {
  const LaunchPlan launch = plan_launch(plan, limits);
  const ExpectedStatistics expected = RoundingBounds(plan, launch, replicate).all();
  const Deviation found = deviation_of(plan, expected, statistics);
  const auto unbounded = std::ranges::count(expected.bounded, false);
  record(choice_of(launch), {.compared = 1,
                             .queries = expected.bounded.size(),
                             .unbounded = static_cast<std::uint64_t>(unbounded),
                             .fallback = fallback,
                             .over_tolerance = found.over_tolerance,
                             .relative = found.relative});
  if (found.over_tolerance <= 1) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << found.worst;
}

/// The negative control of the above, which leaves no record.
inline bool far_from_reference(const Plan& plan, std::uint64_t replicate,
                               const std::vector<double>& statistics,
                               const LaunchLimits& limits = {}) {
  const LaunchPlan launch = plan_launch(plan, limits);
  return deviation_of(plan, RoundingBounds(plan, launch, replicate).all(), statistics)
             .over_tolerance > 1;
}

/// Computes a replicate and compares it with the reference.
inline ::testing::AssertionResult agrees(const Plan& plan, std::uint64_t replicate,
                                         const Options& options = {}) {
  std::atomic<std::uint64_t> fallback = 0;
  Options counting = options;
  counting.fallback_queries = &fallback;
  const std::vector<double> statistics =
      test::one_replicate(*make_cuda_backend(counting), plan, replicate).mean;
  if (options.fallback_queries != nullptr) *options.fallback_queries += fallback;
  return close_to_reference(plan, replicate, statistics, options.limits, fallback);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
