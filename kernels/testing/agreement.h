// SPDX-License-Identifier: Apache-2.0
/// \file Comparison of a backend with the reference, within the rounding of float32; for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/backend.h"
#include "kernels/controls.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"

namespace headlab::test {

inline constexpr double eps32 = 0x1p-24;

/// Statistics of one replicate [layout.statistics()] with its window counts.
inline Moments one_replicate(const Backend& backend, const Plan& plan, std::uint64_t replicate) {
  std::vector<Moments> out(1);
  backend.worker(plan)->run({.first = replicate, .count = 1, .node = 1}, out);
  return out[0];
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

/// Moments of plans simulated together are those of each alone, bit by bit.
inline void expect_same_bits_together(const Backend& backend, const std::vector<Plan>& all,
                                      const Block& block) {
  std::vector<const Plan*> plans;
  for (const Plan& plan : all) {
    EXPECT_TRUE(shares_draws(all[0], plan));
    plans.push_back(&plan);
  }
  const std::size_t nodes = block.nodes();
  std::vector<Moments> together(plans.size() * nodes), alone(nodes);
  backend.worker(plans)->run(block, together);
  for (std::size_t p = 0; p < plans.size(); ++p) {
    backend.worker(*plans[p])->run(block, alone);
    const auto first = together.begin() + static_cast<std::ptrdiff_t>(p * nodes);
    EXPECT_TRUE(same_bits({first, first + static_cast<std::ptrdiff_t>(nodes)}, alone))
        << "plan " << p;
  }
}

/// The statistics of one replicate in float64 [layout.statistics()], how far off a backend may be,
/// and the windows.
struct ExpectedStatistics {
  std::vector<double> values, tolerances;
  /// [Q], false where rounding may change the weights of a head by a quarter: its tolerances are
  /// the ranges of the statistics.
  std::vector<bool> bounded;
  WindowCounts windows;
};

/// How statistics differ from the reference.
struct Deviation {
  double over_tolerance = 0;  ///< the largest error, in tolerances; infinite of NaN
  double relative = 0;        ///< where bounded, relative to the largest statistic of its kind
  std::string worst;          ///< in words
};

inline Deviation deviation_of(const MomentLayout& layout, const ExpectedStatistics& expected,
                              const std::vector<double>& statistics) {
  const auto kind = [&](std::size_t i) {
    const std::size_t s = i % layout.per_query();
    return s < layout.noise_offset() ? 0 : s < layout.control_offset() ? 1 : 2;
  };
  double scale[3] = {};
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    scale[kind(i)] = std::max(scale[kind(i)], std::abs(expected.values[i]));
  }
  Deviation found;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double error = std::abs(statistics.at(i) - expected.values[i]);
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

/// Largest |log weight| of a key at any query, of the projected distances and norms: what the
/// float32 exponents are as large as.
inline double largest_exponent(const Plan& plan, const TrainingSet& sample) {
  const auto d = static_cast<std::size_t>(plan.d);
  const auto k = static_cast<std::size_t>(plan.k);
  /// Sums of the |terms| of the projections of points [N, d] [N, k].
  const auto lengths = [&](const double* projection, const double* points, std::size_t count) {
    std::vector<double> sums(count * k);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t c = 0; c < d; ++c) {
        for (std::size_t j = 0; j < k; ++j) {
          sums[i * k + j] += std::abs(projection[c * k + j] * points[i * d + c]);
        }
      }
    }
    return sums;
  };
  const auto n = static_cast<std::size_t>(plan.n);
  const auto queries = static_cast<std::size_t>(plan.queries);
  double largest = 0;
  for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
    const std::vector<double> of_keys = lengths(&plan.projections[h * d * k], sample.x.data(), n);
    const std::vector<double> of_queries =
        lengths(plan.query_projection(static_cast<int>(h)), plan.query_points.data(), queries);
    for (std::size_t q = 0; q < queries; ++q) {
      for (std::size_t i = 0; i < n; ++i) {
        double r2 = 0;
        for (std::size_t j = 0; j < k; ++j) {
          const double length = of_queries[q * k + j] + of_keys[i * k + j];
          r2 += length * length;
        }
        largest = std::max(largest, r2);
      }
    }
  }
  const double unit = length_scale(*plan.kernel);
  return largest / (2 * unit * unit);
}

/// Sets the tolerances of what exact controls add to the statistics of a query, from those of the
/// statistics without: to first order, by moving each number that a control is made of, one at a
/// time and to either side.
/// \param log_sums log W_h [H] \param log_errors theirs
inline void set_control_tolerances(const Plan& plan, std::size_t query,
                                   std::span<const double> log_sums,
                                   std::span<const double> log_errors, const double* values,
                                   double* tolerances) {
  const MomentLayout layout = plan.layout();
  const QueryControls of(*plan.controls, layout, query);
  const auto heads = static_cast<std::size_t>(layout.heads);
  const auto numbers = [&](std::size_t h, double shift, double of_log) {
    return of.numbers(h, values[h] + shift, of.sum(h, log_sums[h] + of_log));
  };
  double* out = tolerances + layout.control_offset();
  if (layout.controls == ControlStatistics::sums) {
    for (std::size_t h = 0; h < heads; ++h) {
      out[h] = std::expm1(log_errors[h]) * of.sum(h, log_sums[h]);
    }
    return;
  }
  const auto farther = [](const auto& value_at, double error) {
    const double centre = value_at(0);
    return std::max(std::abs(value_at(error) - centre), std::abs(value_at(-error) - centre));
  };
  double& ensemble = tolerances[layout.controlled_ensemble()];
  ensemble = 0;
  for (std::size_t h = 0; h < heads; ++h) {
    out[h] =
        farther(
            [&](double x) { return of.controlled_estimate(h, values[h] + x, numbers(h, x, 0)); },
            tolerances[h]) +
        farther([&](double x) { return of.controlled_estimate(h, values[h], numbers(h, 0, x)); },
                log_errors[h]);
    ensemble += std::abs(plan.head_weights[h]) * out[h];
  }
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t l = h; l < heads; ++l) {
      const std::size_t at = layout.noise_offset() + layout.pair(h, l);
      const auto moved = [&](double noise, double shift_h, double of_h, double shift_l,
                             double of_l) {
        if (h == l) shift_l = shift_h, of_l = of_h;
        return of.controlled_noise(h, l, values[at] + noise, numbers(h, shift_h, of_h),
                                   numbers(l, shift_l, of_l));
      };
      double& sum = tolerances[layout.controlled_noise_offset() + layout.pair(h, l)];
      sum = farther([&](double x) { return moved(x, 0, 0, 0, 0); }, tolerances[at]) +
            farther([&](double x) { return moved(0, x, 0, 0, 0); }, tolerances[h]) +
            farther([&](double x) { return moved(0, 0, x, 0, 0); }, log_errors[h]);
      if (h == l) continue;
      sum += farther([&](double x) { return moved(0, 0, 0, x, 0); }, tolerances[l]) +
             farther([&](double x) { return moved(0, 0, 0, 0, x); }, log_errors[l]);
    }
  }
}

/// What float32 may do to a backend's statistics, in units of eps32 relative to the scale of a
/// statistic: `constant` whatever the exponents, `of_exponent` times the largest |exponent|.
struct Rounding {
  double constant;
  double of_exponent;
};

/// With one bound for all statistics of a kind.
inline ExpectedStatistics expected_statistics(const Plan& plan, std::uint64_t replicate,
                                              const Rounding& rounding) {
  const MomentLayout layout = plan.layout();
  const TrainingSet sample = draw_training_set(plan, replicate);
  ExpectedStatistics expected;
  expected.values = reference_statistics(plan, sample, expected.windows);
  expected.bounded.assign(static_cast<std::size_t>(plan.queries), true);
  const double of_exponent = rounding.of_exponent * largest_exponent(plan, sample);
  const double relative = eps32 * (rounding.constant + of_exponent);
  double largest_value = 0;
  double largest_variance = 0;
  for (std::size_t i = 0; i < sample.regression.size(); ++i) {
    largest_value =
        std::max(largest_value, std::abs(sample.regression[i]) + std::abs(sample.noise[i]) + 1);
    largest_variance = std::max(largest_variance, sample.noise_sd[i] * sample.noise_sd[i]);
  }
  double sum_of_weights = 0;
  for (const double a : plan.head_weights) sum_of_weights += std::abs(a);
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const std::size_t s = i % layout.per_query();
    double scale = largest_value * std::max(1.0, sum_of_weights);
    if (s >= layout.noise_offset()) {
      scale = 2 * largest_variance * std::max(1.0, sum_of_weights * sum_of_weights);
    }
    if (layout.has_alignment() && s == layout.alignment_offset()) scale = 2;
    expected.tolerances.push_back(relative * scale);
  }
  if (!plan.controls) return expected;
  const TrainingSet tokens = tokens_of(plan, sample);
  // Errors of the terms of a sum cancel, so that fewer are left.
  const double of_sum = eps32 * (16 + of_exponent);
  const std::vector<double> errors(static_cast<std::size_t>(plan.heads), of_sum);
  for (int q = 0; q < plan.queries; ++q) {
    std::vector<double> log_sums(errors.size());
    for (int h = 0; h < plan.heads; ++h) {
      WindowCounts counted;
      nw_weights(plan, tokens, h, q, counted, &log_sums[static_cast<std::size_t>(h)]);
    }
    const std::size_t at = static_cast<std::size_t>(q) * layout.per_query();
    set_control_tolerances(plan, static_cast<std::size_t>(q), log_sums, errors,
                           &expected.values[at], &expected.tolerances[at]);
  }
  return expected;
}

/// Every registered kernel law, of temperature `scale` or bandwidth 2 `scale`.
template <std::size_t Index = 0>
std::vector<KernelLaw> all_kernels(double scale) {
  if constexpr (Index < std::variant_size_v<KernelLaws>) {
    std::variant_alternative_t<Index, KernelLaws> law;
    if constexpr (requires { law.temperature; }) {
      law.temperature = scale;
    } else {
      law.bandwidth = 2 * scale;
    }
    std::vector<KernelLaw> laws = all_kernels<Index + 1>(scale);
    laws.push_back(law);
    return laws;
  } else {
    return {};
  }
}

}  // namespace headlab::test
