// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "validation/theory/exact/scalar_tables.h"
#include "validation/theory/mechanisms/finite_n_tokens.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;

/// Beta(k + 1, n - k) in v = log(p/(1 - p)).
struct BetaLaw {
  double a, b;

  BetaLaw(std::uint64_t n, std::uint64_t kept)
      : a(static_cast<double>(kept) + 1), b(static_cast<double>(n - kept)) {}

  double log_density(double v) const {
    return -a * std::log1p(std::exp(-v)) - b * std::log1p(std::exp(v)) + std::lgamma(a + b) -
           std::lgamma(a) - std::lgamma(b);
  }
  Nodes nodes(const Resolution& resolution) const {
    const double peak = std::log(a / b);
    const double sd = std::sqrt((a + b) / (a * b));
    const auto end = [&](double step) {
      double at = peak + step;
      while (log_density(at) > log_density(peak) - resolution.digits - 10) at += step;
      return at;
    };
    const double width = std::min(sd, 1.0) * resolution.widest();
    return panel_nodes(end(-sd), end(sd), {peak}, [&](double) { return width; });
  }
};

/// Nodes that resolve every kept point, wherever it is.
SigmaRange whole_range() {
  return {.from = 0, .to = 1e300, .knee = 0, .loss = ArrayXd::Zero(100)};
}

}  // namespace

HeadMoments top_moments(std::uint64_t n, std::uint64_t kept, const ScalarHead& head,
                        const DesignOf& design, const Resolution& resolution) {
  const BetaLaw beta(n, kept);
  const Nodes outer = beta.nodes(resolution);
  HeadMoments moments;
  for (Index i = 0; i < outer.points.size(); ++i) {
    const double share = outer.weights(i) * std::exp(beta.log_density(outer.points(i)));
    ScalarHead given = head;
    given.cut = head.level_of_mass(1 / (1 + std::exp(-outer.points(i))));
    const SigmaRange range = sigma_range(given, kept, resolution);
    std::vector<DesignNodes> points = design(range, resolution, {.to = given.cut});
    const double mass = head.mass_within(given.cut);
    for (DesignNodes& nodes : points) {
      for (Eigen::VectorXd* part : {&nodes.probability, &nodes.mean, &nodes.square}) *part /= mass;
      moments.coarsened = moments.coarsened || nodes.coarsened;
    }
    const HeadMoments inner = head_moments(kept, sigma_nodes(range, resolution), points);
    moments.mean += share * inner.mean;
    moments.square += share * inner.square;
    moments.normalisation_error += share * (1 + inner.normalisation_error);
  }
  moments.normalisation_error -= 1;
  return moments;
}

RatioMoments ratio_moments(std::uint64_t points, double ratio, const ScalarHead& head,
                           const DesignOf& design, const Resolution& resolution) {
  const auto n = static_cast<double>(points);
  const double depth = -std::log(ratio);
  const double unit = panel_width(resolution.digits);
  const double knee = -std::log(n) - 5;
  const Nodes sigma =
      panel_nodes(-resolution.digits - 7 - std::log(n), std::log(resolution.digits + 10), {knee},
                  [&](double at) { return at < knee ? 3 * unit : unit; });
  // Everything is in units of the largest weight, and in d sigma = ds/s.
  const ArrayXd s = sigma.points.exp();
  const ArrayXd fading = sigma.weights * (-s).exp();
  const SigmaRange everywhere = whole_range();
  RatioMoments moments;
  // The level of the largest weight, in steps over which P(all L > level) falls by e^-4.
  LevelRange largest = {.to = -std::numeric_limits<double>::infinity()};
  for (double fall = 4; fall < resolution.digits + 14; fall += 4) {
    largest = {.from = largest.to, .to = head.level_of_mass(-std::expm1(-fall / n))};
    if (!(largest.from < largest.to)) break;
    for (const DesignNodes& first : design(everywhere, resolution, largest)) {
      moments.coarsened = moments.coarsened || first.coarsened;
      for (Index j = 0; j < first.level.size(); ++j) {
        const double level = first.level(j);
        const double p = first.probability(j);
        const double beyond = 1 - head.mass_within(level);
        if (!(p > 0 && beyond > 0)) continue;
        ArrayXd gone = ArrayXd::Zero(s.size());
        ArrayXd one = gone, mean = gone, square = gone;
        double within = 0;
        for (const DesignNodes& others : design(everywhere, resolution, {level, level + depth})) {
          const KernelTable table = kernel_table(others.level - level, sigma.points);
          within += others.probability.sum() / beyond;
          gone += (table.fall.transpose() * others.probability).array() / beyond;
          one += (table.first.transpose() * others.probability).array() / beyond;
          mean += (table.first.transpose() * others.mean).array() / beyond;
          for (Index i = 0; i < s.size(); ++i) {
            const ArrayXd scaled = (sigma.points(i) + level - others.level).min(700.0).exp();
            square(i) +=
                (others.square.array() * scaled * table.first.col(i).array()).sum() / beyond;
          }
        }
        const double share = n * std::exp((n - 1) * std::log(beyond));
        const ArrayXd all = fading * power_of_phi(gone, n - 1).col(0);
        const ArrayXd but_one = fading * power_of_phi(gone, n - 2).col(0) * (n - 1);
        const ArrayXd but_two = fading * power_of_phi(gone, n - 3).col(0) * (n - 1) * (n - 2);
        moments.mean += share * (first.mean(j) * (all * s).sum() + p * (but_one * mean).sum());
        moments.square +=
            share * (first.square(j) * (all * s * s).sum() +
                     2 * first.mean(j) * (but_one * s * mean).sum() + p * (but_one * square).sum() +
                     p * (but_two * mean * mean).sum());
        moments.normalisation_error += share * p * ((all * s).sum() + (but_one * one).sum());
        moments.mean_kept += share * p * (1 + (n - 1) * within);
      }
    }
  }
  moments.normalisation_error -= 1;
  return moments;
}

}  // namespace headlab
