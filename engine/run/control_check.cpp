// SPDX-License-Identifier: Apache-2.0
#include "engine/run/control_check.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numbers>

#include "engine/files/words.h"
#include "engine/moments/control_fit.h"

namespace headlab {
namespace {

constexpr double max_skewness = 0.1;

/// Means over all replicates of a tree.
std::vector<double> means_of(const MomentTree& tree) {
  std::vector<double> means(tree.layout().statistics());
  for (const Node& node : tree.nodes()) {
    const double share =
        static_cast<double>(node.moments.count) / static_cast<double>(tree.count());
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += share * node.moments.mean[i];
  }
  return means;
}

/// Collects adjustments.
class Tests {
 public:
  Tests(std::uint64_t replicates, double rounding, ControlReport& report)
      : root_(std::sqrt(static_cast<double>(replicates))), rounding_(rounding), report_(report) {}

  /// \param means exact, of the controls \param mean of the adjustment over the replicates
  /// \param spread of the adjustment of one replicate
  template <std::size_t Count>
  void add(const double* coefficients, const double* means, double mean, const Spread& spread) {
    ++report_.statistics;
    double size = 0;
    for (std::size_t c = 0; c < Count; ++c) {
      // A control is a sum over many tokens, of the size of its mean or, where that is 0, of 1.
      if (coefficients[c] != 0) {
        size += std::abs(coefficients[c]) * (means[c] == 0 ? 1 : std::abs(means[c]));
      }
    }
    if (size == 0) return;
    ++report_.adjusted;
    if (!(std::abs(spread.skewness) < max_skewness * root_)) return;
    ++report_.tested;
    const double z = std::abs(mean) / std::hypot(spread.sd / root_, rounding_ * size);
    if (!(z <= report_.largest_z)) report_.largest_z = z;
  }

 private:
  double root_;
  double rounding_;
  ControlReport& report_;
};

}  // namespace

ControlReport check_controls(const FoundControls& found, const MomentTree& tree, double rounding) {
  ControlReport report{.pilot = found.replicates, .pilot_seconds = found.seconds};
  if (tree.count() == 0) return report;
  const MomentLayout& layout = tree.layout();
  const ControlMeans& exact = found.controls.means;
  const std::vector<double> means = means_of(tree);
  Tests tests(tree.count(), rounding, report);
  const auto heads = static_cast<std::size_t>(layout.heads);
  for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
    const double* of_query = &means[q * layout.per_query()];
    const QueryControls controls(found.controls, layout, q);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = q * heads + h;
      tests.add<estimate_controls>(controls.estimate_coefficients(h),
                                   &exact.of_estimates[at * estimate_controls],
                                   of_query[h] - of_query[layout.control_offset() + h],
                                   {found.estimate_sd[at], found.estimate_skewness[at]});
    }
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        const std::size_t pair = layout.pair(h, l);
        const std::size_t at = q * layout.pairs() + pair;
        tests.add<noise_controls>(controls.noise_coefficients(h, l),
                                  &exact.of_noise[at * noise_controls],
                                  of_query[layout.noise_offset() + pair] -
                                      of_query[layout.controlled_noise_offset() + pair],
                                  {found.noise_sd[at], found.noise_skewness[at]});
      }
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
    char z[32];
    std::snprintf(z, sizeof z, "%.3g", controls->largest_z);
    return numbered_condition(i) + ": controls refused: an adjustment of mean 0 is " + z +
           " standard errors from it, so theory and simulation disagree; the figures are those "
           "without controls";
  }
  return "";
}

}  // namespace headlab
