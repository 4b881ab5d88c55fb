// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics/comparison.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "engine/files/words.h"
#include "engine/moments/estimates.h"
#include "validation/statistics/intervals.h"

namespace headlab {
namespace {

/// How far the effect is from contradicting the statement; negative beyond the margin.
double slack(const Comparison& c) {
  return c.statement == Statement::equal ? c.margin - std::abs(c.effect.value)
                                         : c.margin + c.effect.value;
}

/// What the effect may be off by besides its Monte Carlo error.
double off_by(const Comparison& c) {
  return c.theory_error + c.rounding + c.unseen;
}

bool known(const Comparison& c) {
  return std::isfinite(c.effect.value) && std::isfinite(c.effect.mcse) && c.effect.mcse >= 0 &&
         std::isfinite(c.margin) && std::isfinite(c.theory_error);
}

bool decidable(const Comparison& c) {
  return known(c) && c.open.empty() && std::isfinite(off_by(c));
}

/// How far the effect is inside the ends of its margin, the end that it is nearer to first; of
/// `at_least` there is one.
std::vector<Estimate> rooms(const Comparison& c) {
  const auto room = [&](double sign) {
    return Estimate{.value = c.margin + sign * c.effect.value,
                    .mcse = c.effect.mcse,
                    .skewness = sign * c.effect.skewness};
  };
  const std::array<Estimate, 2> both = c.rooms.value_or(std::array{room(-1), room(1)});
  if (c.statement == Statement::at_least) return {both[1]};
  return both[0].value <= both[1].value ? std::vector{both[0], both[1]}
                                        : std::vector{both[1], both[0]};
}

/// T = distance / MCSE as evidence that a number of this skewness is that far above 0: no more than
/// that of Hall's transformation, T + g T^2 / 3 + g^2 T^3 / 27 + g / 6.
double evidence(double distance, const Estimate& of, double skewness) {
  const double t = distance / of.mcse;
  if (!(t > 0) || !std::isfinite(t)) return t;
  const double g = skewness;
  return std::min(t, t + g * t * t / 3 + g * g * t * t * t / 27 + g / 6);
}

Comparison scaled(std::string what, Statement statement, const Jackknifed& effect, double margin,
                  std::span<const double> node_counts, double theory_error) {
  const Estimate estimate = effect.figure(node_counts);
  return {.what = std::move(what),
          .statement = statement,
          .effect = estimate,
          .df = static_cast<double>(node_counts.size()) - 1,
          .replicates = static_cast<std::uint64_t>(
              std::accumulate(node_counts.begin(), node_counts.end(), 0.0)),
          .margin = margin,
          .theory_error = theory_error,
          .rounding = effect.digits,
          .unseen = estimate.allowance,
          .carriers = estimate.carriers};
}

/// Adds the linear figures that a ratio is judged by.
Comparison with_rooms(Comparison c, const Jackknifed& num, const Jackknifed& den, double centre,
                      std::span<const double> node_counts) {
  const Jackknifed size = apply([](double x) { return std::abs(x); }, den);
  const Jackknifed away = difference_above_rounding(num, Jackknifed(centre) * den);
  const Jackknifed toward = den.value < 0 ? Jackknifed(-1) * away : away;
  const Jackknifed unit(std::abs(den.value));
  const auto room = [&](double sign) {
    return ((Jackknifed(c.margin) * size + Jackknifed(sign) * toward) / unit).figure(node_counts);
  };
  c.rooms = std::array{room(-1), room(1)};
  if (!is_away_from_zero(den, node_counts)) c.open = near_zero_denominator;
  return c;
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

Jackknifed difference_above_rounding(const Jackknifed& a, const Jackknifed& b) {
  constexpr double rounding = 64 * std::numeric_limits<double>::epsilon();
  return apply(
      [](double x, double y) {
        const bool same = std::abs(x - y) <= rounding * std::max(std::abs(x), std::abs(y));
        return same ? 0 : x - y;
      },
      a, b);
}

bool is_away_from_zero(const Jackknifed& denominator, std::span<const double> node_counts) {
  const Estimate estimate = denominator.figure(node_counts);
  return std::abs(estimate.value) > denominator_errors * estimate.mcse + estimate.allowance;
}

Comparison ratio_equal_to(std::string what, const Jackknifed& num, const Jackknifed& den, double c,
                          double margin, std::span<const double> node_counts) {
  const Jackknifed off = difference_above_rounding(num / den, c);
  return with_rooms(equal_to(std::move(what), off, 0, 1, margin, node_counts), num, den, c,
                    node_counts);
}

Comparison ratio_at_least(std::string what, const Jackknifed& num, const Jackknifed& den, double c,
                          double zone, std::span<const double> node_counts) {
  const Jackknifed above = difference_above_rounding(num / den, c);
  return with_rooms(at_least_zero(std::move(what), above, 1, zone, node_counts), num, den, c,
                    node_counts);
}

Comparison with_long_tails(Comparison comparison) {
  constexpr double factor = 3;
  comparison.effect.skewness *= factor;
  if (comparison.rooms) {
    for (Estimate& room : *comparison.rooms) room.skewness *= factor;
  }
  return comparison;
}

std::string open_reason(const Comparison& c, std::uint64_t replicates) {
  if (!c.open.empty()) return c.open;
  if (c.rounding > 0 && known(c) && std::abs(slack(c)) <= c.rounding) {
    return formatted("rounding may be %.1e, more than the margin leaves", c.rounding);
  }
  if (!(c.unseen > 0)) return "";
  return "carried by " + carriers_of(c.carriers, replicates);
}

bool supports(const Comparison& c, double alpha) {
  if (!decidable(c)) return false;
  for (const Estimate& room : rooms(c)) {
    const double inside = room.value - off_by(c);
    if (room.mcse == 0
            ? inside < 0
            : !(evidence(inside, room, room.skewness) >= student_quantile(1 - alpha, c.df))) {
      return false;
    }
  }
  return true;
}

bool contradicts(const Comparison& c) {
  return decidable(c) && slack(c) + off_by(c) < 0;
}

double p_value_against(const Comparison& c) {
  if (!decidable(c)) return 1;
  const std::vector<Estimate> all = rooms(c);
  const Estimate& near = all.front();
  const double excess = -near.value - off_by(c);
  if (near.mcse == 0) return excess > 0 ? 0 : 1;
  const double beyond_near_end = student_tail(evidence(excess, near, -near.skewness), c.df);
  if (c.statement == Statement::at_least) return beyond_near_end;
  // An effect of this size arises beyond either end: at a margin of 0 both tails are as likely.
  const Estimate& far = all.back();
  const double to_far_end = far.value + off_by(c);
  return std::min(1.0,
                  beyond_near_end + student_tail(evidence(to_far_end, far, far.skewness), c.df));
}

bool limited_by_theory(const Comparison& c) {
  return std::isfinite(c.theory_error) ? c.theory_error >= c.margin && c.theory_error > 0
                                       : !std::isnan(c.theory_error);
}

double replicates_to_resolve(const Comparison& c, double replicates, double support_alpha,
                             double refute_alpha) {
  if (!known(c) || !c.open.empty()) return std::numeric_limits<double>::infinity();
  if (c.unseen > 0) {
    // Shares of the replicates that are not seen fall with their number, and so do what is open.
    if (!(c.carriers > 0)) return std::numeric_limits<double>::infinity();
    return replicates * std::max(1.0, enough_carriers / c.carriers);
  }
  const double room = slack(c);
  const bool for_it = room >= 0;
  const double needed = std::abs(room) - off_by(c);
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
