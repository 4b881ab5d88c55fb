// SPDX-License-Identifier: Apache-2.0
#include "engine/run/control_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

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
  Tests(std::uint64_t replicates, ControlReport& report)
      : root_(std::sqrt(static_cast<double>(replicates))), report_(report) {}

  /// \param mean of the adjustment over the replicates \param sd of one replicate
  /// \param error of the mean, of rounding
  void add(bool adjusts, double mean, double sd, double skewness, double error) {
    ++report_.statistics;
    if (!adjusts) return;
    ++report_.adjusted;
    if (!(std::abs(skewness) < max_skewness * root_)) return;
    ++report_.tested;
    const double z = std::abs(mean) / std::hypot(sd / root_, error);
    if (!(z <= report_.largest_z)) report_.largest_z = z;
  }

 private:
  double root_;
  ControlReport& report_;
};

}  // namespace

ControlReport check_controls(const FoundControls& found, const MomentTree& tree,
                             double rounding) {
  ControlReport report{.pilot = found.replicates, .pilot_seconds = found.seconds};
  if (tree.count() == 0) return report;
  const MomentLayout& layout = tree.layout();
  const ControlMeans& exact = found.controls.means;
  const std::vector<double> means = means_of(tree);
  Tests tests(tree.count(), report);
  const auto heads = static_cast<std::size_t>(layout.heads);
  for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
    const double* of_query = &means[q * layout.per_query()];
    const QueryControls controls(found.controls, layout, q);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = q * heads + h;
      const std::size_t pair = q * layout.pairs() + layout.pair(h, h);
      const double* a = controls.estimate_coefficients(h);
      const double variance = a[0] * a[0] * exact.sum_variance[at] +
                              2 * a[0] * a[1] * exact.sum_covariance[at] +
                              a[1] * a[1] * exact.product[pair];
      // g_h has the rounding of mu_h - r_h.
      const double size = std::max(1.0, std::abs(exact.estimate[at]));
      tests.add(a[0] != 0 || a[1] != 0, of_query[h] - of_query[layout.control_offset() + h],
                std::sqrt(std::max(variance, 0.0)), found.estimate_skewness[at],
                rounding * (std::abs(a[0]) + std::abs(a[1]) * size));
    }
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        const std::size_t pair = layout.pair(h, l);
        const std::size_t at = q * layout.pairs() + pair;
        const double* b = controls.noise_coefficients(h, l);
        double weight = 0;
        for (std::size_t c = 0; c + 1 < noise_controls; ++c) weight += std::abs(b[c]);
        weight += std::abs(b[noise_controls - 1] * exact.product[at]);
        const bool adjusts = std::any_of(b, b + noise_controls, [](double x) { return x != 0; });
        tests.add(adjusts,
                  of_query[layout.noise_offset() + pair] -
                      of_query[layout.controlled_noise_offset() + pair],
                  found.noise_sd[at], found.noise_skewness[at], rounding * weight);
      }
    }
  }
  // Twice the upper tail, for every test.
  const double tail = std::erfc(report.largest_z / std::numbers::sqrt2);
  report.refused = !(static_cast<double>(report.tested) * tail >= control_refusal_rate) &&
                   report.tested > 0;
  return report;
}

}  // namespace headlab
