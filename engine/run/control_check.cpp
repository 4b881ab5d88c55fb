// SPDX-License-Identifier: Apache-2.0
#include "engine/run/control_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "engine/files/words.h"
#include "engine/moments/control_fit.h"

namespace headlab {
namespace {

/// Fewest nodes whose spread is taken for that of the replicates.
constexpr std::size_t min_nodes = 8;
/// Largest spread over a run's nodes that is taken for that of the pilot, as a multiple of it: at
/// min_nodes normal nodes a healthy one is larger with a probability below 1e-10.
constexpr double max_spread_ratio = 3;

/// Difference of two statistics, one of which has controls, over the replicates of a run.
class Adjustments {
 public:
  explicit Adjustments(const MomentTree& tree)
      : nodes_(tree.jackknife_nodes()), total_(static_cast<double>(tree.count())) {}

  /// \param plain,with places of the statistics
  double mean(std::size_t plain, std::size_t with) const {
    double sum = 0;
    for (const Node& node : nodes_) sum += share(node) * of(node, plain, with);
    return sum;
  }
  /// Standard error of the mean by the spread of the nodes; 0 where there are few.
  double error(std::size_t plain, std::size_t with) const {
    if (nodes_.size() < min_nodes) return 0;
    const double centre = mean(plain, with);
    double sum = 0;
    for (const Node& node : nodes_) {
      const double away = share(node) * (of(node, plain, with) - centre);
      sum += away * away;
    }
    const auto count = static_cast<double>(nodes_.size());
    return std::sqrt(sum * count / (count - 1));
  }

 private:
  double share(const Node& node) const { return static_cast<double>(node.moments.count) / total_; }
  static double of(const Node& node, std::size_t plain, std::size_t with) {
    return node.moments.mean[plain] - node.moments.mean[with];
  }

  std::vector<Node> nodes_;
  double total_;
};

/// The normal variable of a mean that is `z` standard deviations from its expectation and has a
/// gamma law, shifted, of that skewness: Wilson and Hilferty (1931). Far out below its least value.
double normal_of_skewed(double z, double skewness) {
  constexpr double nearly_none = 1e-3;
  if (std::abs(skewness) < nearly_none) return z;
  const double root = 2 / std::abs(skewness);  // of the shape
  const double ratio = 1 + (skewness > 0 ? z : -z) / root;
  constexpr double far_out = 40;
  if (!(ratio > 0)) return std::max(far_out, std::abs(z));
  return 3 * root * (std::cbrt(ratio) - 1 + 1 / (9 * root * root));
}

/// Collects adjustments.
class Tests {
 public:
  Tests(const MomentTree& tree, ControlReport& report)
      : adjustments_(tree), root_(std::sqrt(static_cast<double>(tree.count()))), report_(report) {}

  /// \param plain,with places of the statistic and of the controlled one
  /// \param spread of the adjustment of one replicate, in the pilot
  /// \param rounding bound of what all replicates may share
  void add(bool used, std::size_t plain, std::size_t with, const Spread& spread, double rounding) {
    ++report_.statistics;
    if (!(spread.sd > 0)) return;
    ++report_.adjusted;
    if (!used) return;
    ++report_.tested;
    // The pilot, to which coefficients were fitted, may lack the tails that the run has. What is
    // left then is no control: its mean says nothing, and it adds variance.
    const double of_run = adjustments_.error(plain, with);
    if (of_run > max_spread_ratio * spread.sd / root_) {
      report_.wilder = true;
      return;
    }
    const double error = std::max(spread.sd / root_, of_run);
    const double z = std::abs(normal_of_skewed(
        adjustments_.mean(plain, with) / std::hypot(error, rounding), spread.skewness / root_));
    if (!(z <= report_.largest_z)) report_.largest_z = z;
  }

 private:
  Adjustments adjustments_;
  double root_;
  ControlReport& report_;
};

}  // namespace

ControlReport check_controls(const FoundControls& found, const MomentTree& tree) {
  ControlReport report{.pilot = found.replicates, .pilot_seconds = found.seconds};
  if (tree.count() == 0) return report;
  const MomentLayout& layout = tree.layout();
  const ControlUse& use = found.controls.use;
  Tests tests(tree, report);
  const auto heads = static_cast<std::size_t>(layout.heads);
  for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
    const std::size_t first = q * layout.per_query();
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = q * heads + h;
      tests.add(use.has_estimates(q, tree.count()), first + h, first + layout.control_offset() + h,
                {found.estimate_sd[at], found.estimate_skewness[at]}, use.estimate_rounding[at]);
    }
    for (std::size_t pair = 0; pair < layout.pairs(); ++pair) {
      const std::size_t at = q * layout.pairs() + pair;
      tests.add(use.has_noise(at, tree.count()), first + layout.noise_offset() + pair,
                first + layout.controlled_noise_offset() + pair,
                {found.noise_sd[at], found.noise_skewness[at]}, use.noise_rounding[at]);
    }
  }
  // Twice the upper tail, for every test.
  const double tail = std::erfc(report.largest_z / std::numbers::sqrt2);
  report.refused =
      !(static_cast<double>(report.tested) * tail >= control_refusal_rate) && report.tested > 0;
  return report;
}

std::string refused_controls(const RunResult& result) {
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const ControlReport* controls = result.conditions[i].controls.get();
    if (controls == nullptr || !controls->refused) continue;
    return numbered_condition(i) + ": controls refused: an adjustment of mean 0 is " +
           formatted("%.3g", controls->largest_z) +
           " standard errors from it, so a mean is wrong, or neither the pilot nor the run saw "
           "how far the statistic goes; the figures are those without controls";
  }
  return "";
}

}  // namespace headlab
