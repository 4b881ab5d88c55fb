// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/scalar_head.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <variant>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_chi_squared.hpp>

#include "kernels/kernel_laws.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;

constexpr double infinity = std::numeric_limits<double>::infinity();

void append(Nodes& nodes, const Nodes& more) {
  const Eigen::Index size = nodes.points.size();
  const Eigen::Index added = more.points.size();
  nodes.points.conservativeResize(size + added);
  nodes.points.tail(added) = more.points;
  nodes.weights.conservativeResize(size + added);
  nodes.weights.tail(added) = more.weights;
}

/// P(Z > z).
double upper_tail(double z) {
  return 0.5 * std::erfc(z / std::numbers::sqrt2);
}

double standard_score(double u, const ScalarLaw& law) {
  if (law.sd > 0) return (u - law.mean) / law.sd;
  return u >= law.mean ? std::numeric_limits<double>::infinity()
                       : -std::numeric_limits<double>::infinity();
}

/// log E K, in closed form.
double log_mean_kernel(const ScalarHead& head) {
  ArrayXd logs(static_cast<Eigen::Index>(head.laws.size()));
  for (std::size_t c = 0; c < head.laws.size(); ++c) {
    const double mean = head.laws[c].mean;
    const double spread = std::pow(head.rate * head.laws[c].sd, 2);
    const double distance = head.rate * (head.dimension > 1 ? head.distance : mean - head.centre);
    logs(static_cast<Eigen::Index>(c)) =
        std::log(head.weights[c]) + (head.softmax ? head.rate * mean + spread / 2
                                                  : -0.5 * (head.dimension * std::log1p(spread) +
                                                            distance * distance / (1 + spread)));
  }
  const double largest = logs.maxCoeff();
  return largest + std::log((logs - largest).exp().sum());
}

/// The interval outside which a law has no mass that counts.
std::pair<double, double> reach(int dimension, const ScalarLaw& law, const Resolution& resolution) {
  const double from = law.mean - resolution.reach() * law.sd;
  return {dimension > 1 ? std::max(from, 0.0) : from, law.mean + resolution.reach() * law.sd};
}

/// Least and largest L over the reach of the design.
std::pair<double, double> levels(const ScalarHead& head, const Resolution& resolution) {
  double least = std::numeric_limits<double>::infinity();
  double largest = -least;
  for (const ScalarLaw& law : head.laws) {
    const auto [from, to] = reach(head.dimension, law, resolution);
    ArrayXd ends(3);
    ends << from, to, std::clamp(head.centre, from, to);
    const ArrayXd level = head.minus_log_kernel(ends);
    least = std::min(least, level.minCoeff());
    largest = std::max(largest, level.maxCoeff());
  }
  return {least, largest};
}

}  // namespace

double Resolution::reach() const {
  return std::sqrt(2 * (digits + 10));
}

double Resolution::widest() const {
  return 60 / digits;
}

ArrayXd ScalarLaw::density(const ArrayXd& points) const {
  return (-((points - mean) / sd).square() / 2).exp() / (sd * std::sqrt(2 * std::numbers::pi));
}

ArrayXd ScalarHead::minus_log_kernel(const ArrayXd& u) const {
  if (softmax) return -rate * u;
  return (rate * (u - centre)).square() / 2;
}

double ScalarHead::scale(double u) const {
  return softmax ? 1 / rate : 1 / (rate * std::sqrt(1 + std::pow(rate * (u - centre), 2)));
}

double ScalarHead::steepness(double level) const {
  return softmax ? rate : rate * std::sqrt(2 * std::max(level, 0.0));
}

double ScalarHead::survival(double level) const {
  if (std::isfinite(cut)) {
    return level >= cut ? 0 : std::clamp(1 - mass_within(level) / mass_within(cut), 0.0, 1.0);
  }
  if (dimension > 1) {
    if (level <= 0) return 1;
    const double square = 2 * level / (rate * rate);
    return distance > 0
               ? cdf(complement(
                     boost::math::non_central_chi_squared(dimension, distance * distance), square))
               : cdf(complement(boost::math::chi_squared(dimension), square));
  }
  double probability = 0;
  for (std::size_t c = 0; c < laws.size(); ++c) {
    if (softmax) {
      const double u =
          rate > 0 ? -level / rate : std::copysign(std::numeric_limits<double>::infinity(), -level);
      probability += weights[c] * upper_tail(-standard_score(u, laws[c]));
    } else if (level <= 0) {
      probability += weights[c];
    } else {
      const double radius = std::sqrt(2 * level) / rate;
      probability += weights[c] * (upper_tail(standard_score(centre + radius, laws[c])) +
                                   upper_tail(-standard_score(centre - radius, laws[c])));
    }
  }
  return std::min(probability, 1.0);
}

double ScalarHead::mass_within(double level) const {
  if (dimension > 1) {
    if (level <= 0) return 0;
    const double square = 2 * level / (rate * rate);
    return distance > 0
               ? cdf(boost::math::non_central_chi_squared(dimension, distance * distance), square)
               : cdf(boost::math::chi_squared(dimension), square);
  }
  double mass = 0;
  for (std::size_t c = 0; c < laws.size(); ++c) {
    for (const auto& [from, to] : intervals({.to = level})) {
      // Between two tails on the side where they are small.
      const double low = standard_score(from, laws[c]);
      const double high = standard_score(to, laws[c]);
      mass += weights[c] *
              (low > 0 ? upper_tail(low) - upper_tail(high) : upper_tail(-high) - upper_tail(-low));
    }
  }
  return std::clamp(mass, 0.0, 1.0);
}

double ScalarHead::level_of_mass(double mass) const {
  // Within 40 standard deviations there is all mass.
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const ScalarLaw& law : laws) {
    ArrayXd ends(3);
    ends << law.mean - 40 * law.sd, law.mean + 40 * law.sd, softmax ? law.mean : centre;
    const ArrayXd level = minus_log_kernel(ends);
    low = std::min(low, level.minCoeff());
    high = std::max(high, level.maxCoeff());
  }
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    (mass_within(middle) < mass ? low : high) = middle;
  }
}

std::vector<std::pair<double, double>> ScalarHead::intervals(const LevelRange& levels) const {
  if (softmax) return {{-levels.to / rate, -levels.from / rate}};
  const double inner = std::sqrt(2 * std::max(levels.from, 0.0)) / rate;
  const double outer = std::sqrt(2 * std::max(levels.to, 0.0)) / rate;
  if (dimension > 1) return {{inner, outer}};
  if (inner == 0) return {{centre - outer, centre + outer}};
  return {{centre - outer, centre - inner}, {centre + inner, centre + outer}};
}

bool ScalarHead::is_constant() const {
  if (dimension > 1) return false;
  if (softmax && rate == 0) return true;
  return std::ranges::all_of(laws, [](const ScalarLaw& law) { return law.sd == 0; }) &&
         laws.size() == 1;
}

ScalarHead scalar_head(const TheoryModel& model, const Eigen::VectorXd& query, std::size_t head) {
  const Eigen::MatrixXd& frame = model.projections[head];
  ScalarHead scalar;
  scalar.direction = frame.col(0);
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&*model.kernel)) {
    const Eigen::VectorXd tilt =
        frame * (model.query_projection(head).transpose() * query) / softmax->temperature;
    scalar.softmax = true;
    scalar.rate = tilt.norm();
    if (scalar.rate > 0) scalar.direction = tilt / scalar.rate;
  } else {
    scalar.centre = scalar.direction.dot(query);
    scalar.rate = 1 / std::get<GaussianKernel>(*model.kernel).bandwidth;
  }
  scalar.weights = model.design.weights;
  for (const GaussianLaw& component : model.design.components) {
    const double variance = scalar.direction.dot(component.covariance * scalar.direction);
    scalar.laws.push_back(
        {scalar.direction.dot(component.mean), std::sqrt(std::max(variance, 0.0))});
  }
  return scalar;
}

ScalarHead radial_head(int k, double distance, double bandwidth) {
  ScalarHead head;
  head.dimension = k;
  head.distance = distance;
  head.rate = 1 / bandwidth;
  head.weights = {1.0};
  head.laws = {{std::sqrt(distance * distance + k - 1), 1.0}};
  return head;
}

ArrayXd radial_density(const ScalarHead& head, const ArrayXd& radius) {
  const double noncentrality = head.distance * head.distance;
  return radius.unaryExpr([&](double r) {
    const double density =
        noncentrality > 0
            ? pdf(boost::math::non_central_chi_squared(head.dimension, noncentrality), r * r)
            : pdf(boost::math::chi_squared(head.dimension), r * r);
    return 2 * r * density;
  });
}

SigmaRange sigma_range(const ScalarHead& head, std::uint64_t n, const Resolution& resolution) {
  const auto [least, largest] = levels(head, resolution);
  double log_mean = log_mean_kernel(head);
  if (std::isfinite(head.cut)) {
    log_mean = std::min(log_mean - std::log(head.mass_within(head.cut)), -least);
  }
  return sigma_range({log_mean, least, largest, [&](double level) { return head.survival(level); }},
                     n, resolution);
}

SigmaRange sigma_range(const KernelLevels& kernel, std::uint64_t n, const Resolution& resolution) {
  const double points = static_cast<double>(n);
  const double log_mean = std::log(points) + kernel.log_mean;
  // phi(s) <= P(L > level) + exp(-exp(sigma - level)): both powers n are small from here.
  double low = kernel.least;
  double high = kernel.largest;
  const auto is_enough = [&](double level) {
    return points * std::log(kernel.survival(level)) <= -(resolution.digits + 8);
  };
  while (high - low > 0.1) {
    const double middle = (low + high) / 2;
    (is_enough(middle) ? high : low) = middle;
  }
  const double margin = std::log(resolution.digits + 10);
  SigmaRange range = {.from = -resolution.digits - 7 - log_mean,
                      .to = high + margin,
                      .knee = std::min(-log_mean, kernel.least) - 5,
                      .loss = ArrayXd::LinSpaced(100, 0, 1)};
  range.loss = range.loss.unaryExpr([&](double share) {
    const double sigma = range.from + share * (range.to - range.from);
    return -points * std::log(std::max(kernel.survival(sigma - margin), 1e-300));
  });
  return range;
}

Nodes sigma_nodes(const SigmaRange& range, const Resolution& resolution) {
  const double unit = panel_width(resolution.digits);
  return panel_nodes(range.from, range.to, {range.knee},
                     [&](double sigma) { return sigma < range.knee ? 3 * unit : unit; });
}

double SigmaRange::loss_at(double sigma) const {
  const double steps = static_cast<double>(loss.size() - 1);
  const double step = std::floor(std::clamp((sigma - from) / (to - from), 0.0, 1.0) * steps);
  return loss(static_cast<Eigen::Index>(step));
}

double SigmaRange::loss_of_level(double level) const {
  // At sigma below the level e^(-sK) is within exp(sigma - level) of 1.
  const double step = (to - from) / static_cast<double>(loss.size() - 1);
  double least = loss(loss.size() - 1) + std::max(level - to, 0.0);
  for (Eigen::Index j = 0; j + 1 < loss.size(); ++j) {
    const double sigma = from + step * static_cast<double>(j + 1);
    least = std::min(least, loss(j) + std::max(level - sigma, 0.0));
  }
  return least;
}

Nodes sigma_nodes(const ScalarHead& head, const SigmaRange& range, std::uint64_t n,
                  double smoothing, const Resolution& resolution) {
  const double points = static_cast<double>(n);
  const auto width = [&](double sigma) {
    if (sigma < range.knee) return 3 * panel_width(resolution.digits);
    const double unit = panel_width(resolution.digits - range.loss_at(sigma));
    // Averaging over the design makes the integrand smooth over `smoothing` times the steepness,
    // except phi^n, and the end of the support of L at 0.
    double wide = unit * std::max(1.0, 0.4 * head.steepness(sigma) * smoothing);
    if (!head.softmax) wide = std::min(wide, sigma);
    const double fall =
        points * (std::log(head.survival(sigma)) - std::log(head.survival(sigma + 1)));
    return std::max(unit, std::min(wide, 4 * unit / fall));
  };
  return panel_nodes(range.from, range.to, {range.knee}, width);
}

Nodes scalar_nodes(const ScalarLaw& law, const std::vector<Sight>& sights, double widest,
                   const Resolution& resolution, const LevelRange& levels) {
  const ScalarHead& own = sights.at(0).head;
  if (!(law.sd > 0)) {
    const ArrayXd point = ArrayXd::Constant(1, law.mean);
    const double level = own.minus_log_kernel(point)(0);
    if (level > levels.from && level <= levels.to)
      return {.points = point, .weights = ArrayXd::Ones(1)};
    return {};
  }
  const auto [from, to] = reach(own.dimension, law, resolution);
  double stretch = 1;
  const auto width = [&](double u) {
    const double z = (u - law.mean) / law.sd;
    double least = std::min(widest, resolution.widest() * law.sd);
    for (const Sight& sight : sights) {
      const double v = sight.offset + sight.slope * u;
      const double level = sight.head.minus_log_kernel(ArrayXd::Constant(1, v))(0);
      const double digits =
          resolution.digits - z * z / 2 - sight.range.loss_of_level(sight.loss_share * level);
      least = std::min(least, panel_width(digits) * sight.head.scale(v) / std::abs(sight.slope));
    }
    return stretch * least;
  };
  std::vector<double> breaks;
  for (const Sight& sight : sights) {
    breaks.push_back((sight.head.centre - sight.offset) / sight.slope);
  }
  const auto lay = [&, from = from, to = to] {
    if (levels.from == -infinity && levels.to == infinity)
      return panel_nodes(from, to, breaks, width);
    Nodes nodes;
    for (const auto& [low, high] : own.intervals(levels)) {
      const double start = std::max(low, from);
      const double end = std::min(high, to);
      if (start < end) append(nodes, panel_nodes(start, end, breaks, width));
    }
    return nodes;
  };
  Nodes nodes = lay();
  while (nodes.points.size() > resolution.max_nodes) {
    stretch *=
        1.2 * static_cast<double>(nodes.points.size()) / static_cast<double>(resolution.max_nodes);
    nodes = lay();
    nodes.coarsened = true;
  }
  return nodes;
}

ArrayXd masses(const Nodes& nodes, const ScalarLaw& law) {
  return law.sd > 0 ? (nodes.weights * law.density(nodes.points)).eval() : nodes.weights;
}

}  // namespace headlab
