// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "validation/statistics/intervals.h"

namespace headlab {
namespace {

/// How far the effect is from contradicting the statement; negative beyond the margin.
double slack(const Comparison& c) {
  return c.statement == Statement::equal ? c.margin - std::abs(c.effect.value)
                                         : c.margin + c.effect.value;
}

bool known(const Comparison& c) {
  return std::isfinite(c.effect.value) && std::isfinite(c.effect.mcse) && c.effect.mcse >= 0 &&
         std::isfinite(c.margin) && std::isfinite(c.theory_error);
}

Comparison scaled(std::string what, Statement statement, const Jackknifed& effect, double margin,
                  std::span<const double> node_counts, double theory_error) {
  return {.what = std::move(what),
          .statement = statement,
          .effect = effect.figure(node_counts),
          .df = static_cast<double>(node_counts.size()) - 1,
          .margin = margin,
          .theory_error = theory_error};
}

}  // namespace

Comparison equal_to(std::string what, const Jackknifed& sample, double expected, double scale,
                    double margin, std::span<const double> node_counts, double theory_error) {
  Comparison c = scaled(std::move(what), Statement::equal, (sample - expected) / scale, margin,
                        node_counts, theory_error);
  c.observed = sample.value;
  c.expected = expected;
  return c;
}

Comparison at_least_zero(std::string what, const Jackknifed& sample, double scale, double zone,
                         std::span<const double> node_counts, double theory_error) {
  return scaled(std::move(what), Statement::at_least, sample / scale, zone, node_counts,
                theory_error);
}

bool supports(const Comparison& c, double alpha) {
  if (!known(c)) return false;
  const double room = slack(c) - c.theory_error;
  if (c.effect.mcse == 0) return room >= 0;
  return room >= student_quantile(1 - alpha, c.df) * c.effect.mcse;
}

bool contradicts(const Comparison& c) {
  return known(c) && slack(c) + c.theory_error < 0;
}

double p_value_against(const Comparison& c) {
  if (!known(c)) return 1;
  const double excess = -slack(c) - c.theory_error;
  if (c.effect.mcse == 0) return excess > 0 ? 0 : 1;
  const double beyond_near_end = student_tail(excess / c.effect.mcse, c.df);
  if (c.statement == Statement::at_least) return beyond_near_end;
  // An effect of this size arises beyond either end: at a margin of 0 both tails are as likely.
  const double to_far_end = std::abs(c.effect.value) + c.margin + c.theory_error;
  return std::min(1.0, beyond_near_end + student_tail(to_far_end / c.effect.mcse, c.df));
}

bool limited_by_theory(const Comparison& c) {
  return std::isfinite(c.theory_error) ? c.theory_error >= c.margin && c.theory_error > 0
                                       : !std::isnan(c.theory_error);
}

double replicates_to_resolve(const Comparison& c, double replicates, double support_alpha,
                             double refute_alpha) {
  if (!known(c)) return std::numeric_limits<double>::infinity();
  const double room = slack(c);
  const bool for_it = room >= 0;
  const double needed = std::abs(room) - c.theory_error;
  if (!(needed > 0)) return std::numeric_limits<double>::infinity();
  const double t = student_quantile(1 - (for_it ? support_alpha : refute_alpha), c.df);
  const double ratio = t * c.effect.mcse / needed;
  return std::max(replicates, replicates * ratio * ratio);
}

std::vector<bool> holm(std::span<const double> p_values, double alpha) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> rejected(p_values.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    if (!(p_values[order[i]] <= alpha / left)) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

}  // namespace headlab
