// SPDX-License-Identifier: Apache-2.0
#include "engine/run/control_check.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numbers>

#include "engine/files/words.h"

namespace headlab {
namespace {

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
  Tests(std::uint64_t replicates, ControlReport& report)
      : root_(std::sqrt(static_cast<double>(replicates))), report_(report) {}

  /// \param mean of the adjustment over the replicates \param sd of that of one replicate
  /// \param rounding bound of what all replicates may share
  void add(bool used, double mean, double sd, double rounding) {
    ++report_.statistics;
    if (!(sd > 0)) return;
    ++report_.adjusted;
    if (!used) return;
    ++report_.tested;
    const double z = std::abs(mean) / std::hypot(sd / root_, rounding);
    if (!(z <= report_.largest_z)) report_.largest_z = z;
  }

 private:
  double root_;
  ControlReport& report_;
};

}  // namespace

ControlReport check_controls(const FoundControls& found, const MomentTree& tree) {
  ControlReport report{.pilot = found.replicates, .pilot_seconds = found.seconds};
  if (tree.count() == 0) return report;
  const MomentLayout& layout = tree.layout();
  const ControlUse& use = found.controls.use;
  const std::vector<double> means = means_of(tree);
  Tests tests(tree.count(), report);
  const auto heads = static_cast<std::size_t>(layout.heads);
  for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
    const double* of_query = &means[q * layout.per_query()];
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = q * heads + h;
      tests.add(use.has_estimates(q, tree.count()),
                of_query[h] - of_query[layout.control_offset() + h], found.estimate_sd[at],
                use.estimate_rounding[at]);
    }
    for (std::size_t pair = 0; pair < layout.pairs(); ++pair) {
      const std::size_t at = q * layout.pairs() + pair;
      tests.add(use.has_noise(at, tree.count()),
                of_query[layout.noise_offset() + pair] -
                    of_query[layout.controlled_noise_offset() + pair],
                found.noise_sd[at], use.noise_rounding[at]);
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
