// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/population/population_head.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "kernels/parallel_for.h"
#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/exact/scalar_tables.h"
#include "validation/theory/model/panels.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Natural digits aimed at.
constexpr double digits = 22;
/// Of sigma: exp(-pi^2/step) = 5e-15, times some hundreds for s^2 e^(-s).
constexpr double sigma_step = 0.3;
/// Of the queries' length, and of a radius upwards, in standard deviations.
constexpr unsigned order_of_kronrod = 41, order_of_gauss = 20;
constexpr double query_reach = 6.5, radius_reach = 7;
/// Panels of the coarse grid: at most this, at least that, in standard deviations of the design.
constexpr double widest_panel = 2.5, narrowest_panel = 0.25;
/// Sigma at which exp(-exp(sigma - L)) is 0.
constexpr double above_level = 4.2;
/// Range of levels that a grid takes.
constexpr double max_levels = 40000;

using Panel = Eigen::Array<double, panel_order, 1>;

/// Values on the Gauss-Legendre points of a panel, as combinations of those on another's.
MatrixXd interpolation(const ArrayXd& from, const ArrayXd& to) {
  ArrayXd barycentric = ArrayXd::Ones(from.size());
  for (Index a = 0; a < from.size(); ++a) {
    for (Index b = 0; b < from.size(); ++b) {
      if (a != b) barycentric(a) /= (from(a) - from(b)) * 4 / (from.maxCoeff() - from.minCoeff());
    }
  }
  MatrixXd lagrange(to.size(), from.size());
  for (Index i = 0; i < to.size(); ++i) {
    const ArrayXd apart = to(i) - from;
    Index at = 0;
    if (apart.abs().minCoeff(&at) == 0) {
      lagrange.row(i) = VectorXd::Unit(from.size(), at);
    } else {
      const ArrayXd share = barycentric / apart;
      lagrange.row(i) = share / share.sum();
    }
  }
  return lagrange;
}

/// The scalar that the kernel sees, increasing with L = -log K: R for a Gaussian kernel, minus the
/// coordinate along q for softmax.
struct Scalar {
  const PopulationDomain& domain;
  double q;  ///< |q|

  double level(double r, double width) const {
    return domain.softmax ? q / width * r : r * r / (2 * width * width);
  }
  /// Length over which the level changes by about one.
  double scale(double r, double width) const {
    return domain.softmax ? width / q : width / std::hypot(1, r / width);
  }
  double log_mean_kernel(double width) const {
    const double a = 1 / (width * width);
    return domain.softmax ? q * q * a / 2 : -0.5 * (domain.k * std::log1p(a) + q * q * a / (1 + a));
  }
  double density(double r) const {
    return domain.softmax ? std::exp(-r * r / 2) / std::sqrt(2 * std::numbers::pi)
                          : noncentral_chi_density(domain.k, q, r);
  }
  std::pair<double, double> reach(double log_n) const {
    const double deep = std::sqrt(2 * (digits + log_n));
    if (domain.softmax) return {-deep, radius_reach};
    const double middle = std::sqrt(q * q + domain.k);
    return {std::max(0.0, middle - deep - 1), middle + radius_reach};
  }
  /// E[c(U - q) | scalar].
  ArrayXd near(const Correlation& c, const ArrayXd& r) const {
    if (!domain.softmax) return c(domain.k, r);
    // Across q, U has k - 1 coordinates of its own and q has none.
    return c(1, r + q) * std::pow(1 + 1 / (c.scale * c.scale), -0.5 * (domain.k - 1));
  }
  /// E[c(U_1 - U_2) | scalars].
  MatrixXd correlation(const Correlation& c, const ArrayXd& r) const {
    if (!domain.softmax) return conditional_correlation(c, domain.k, q, r);
    MatrixXd table(r.size(), r.size());
    for (Index a = 0; a < r.size(); ++a) table.col(a) = c(1, r - r(a)) * c.mean(domain.k - 1);
    return table;
  }
};

/// Integrals over the design for one query and one width, [sigma] or [coarse point][sigma].
struct Tables {
  ArrayXd sigma;
  ArrayXd second;               ///< E[(sK)^2 e^(-sK)]
  MatrixXd first;               ///< E[sK e^(-sK)], in shares of the coarse points
  MatrixXd fall;                ///< E[1 - e^(-sK)], likewise
  VectorXd mass;                ///< the probability, likewise
  ArrayXd all_first, all_fall;  ///< sums of shares
};

/// One query.
class QueryGrid {
 public:
  QueryGrid(const PopulationDomain& domain, double q, double log_n)
      : scalar_{domain, q}, log_n_(log_n) {
    const auto [from, to] = scalar_.reach(log_n);
    double wide = widest_panel;
    for (const Correlation& c : domain.correlations) {
      wide = std::min(wide, c.kind == Correlation::Kind::gaussian ? 2.5 * c.scale : 6 / c.scale);
    }
    const auto panels =
        static_cast<Index>(std::ceil((to - from) / std::max(wide, narrowest_panel)));
    edges_ = ArrayXd::LinSpaced(panels + 1, from, to);
    coarse_.resize(panels * panel_order);
    coarse_weights_.resize(panels * panel_order);
    for (Index p = 0; p < panels; ++p) {
      const Nodes nodes = panel_nodes(edges_(p), edges_(p + 1), {}, [](double) { return 1e9; });
      coarse_.segment(p * panel_order, panel_order) = nodes.points;
      coarse_weights_.segment(p * panel_order, panel_order) = nodes.weights;
    }
    for (const Correlation& c : domain.correlations) {
      near_.push_back(scalar_.near(c, coarse_));
      correlations_.push_back(scalar_.correlation(c, coarse_));
    }
  }

  Tables tables(double width, std::uint64_t min_n) const;
  PopulationHead head(const Tables& tables, std::uint64_t n) const;

 private:
  Scalar scalar_;
  double log_n_;
  ArrayXd edges_;
  ArrayXd coarse_, coarse_weights_;
  std::vector<VectorXd> near_;
  std::vector<MatrixXd> correlations_;
};

Tables QueryGrid::tables(double width, std::uint64_t min_n) const {
  const Index panels = edges_.size() - 1;
  const double unit = panel_width(digits);
  // From where the integrals of the largest n begin to where those of the smallest have ended.
  const double from = -digits - 4 - log_n_ - scalar_.log_mean_kernel(width);
  const double needed = 65 / std::max(static_cast<double>(min_n) - 2, 1e-9);
  double to = scalar_.level(edges_(panels), width) + above_level;
  double below = 0;
  for (Index i = 0; i < coarse_.size() && below < needed; ++i) {
    below += coarse_weights_(i) * scalar_.density(coarse_(i));
    if (below >= needed) to = std::min(to, scalar_.level(coarse_(i), width));
  }
  // Keys whose sK is below this add nothing to n of them.
  const double cut = digits + log_n_;
  const double highest = std::min(to + cut, scalar_.level(edges_(panels), width));
  if (highest - from > max_levels) {
    throw InvalidInput("exact theory: a kernel of width " + number_text(width) +
                       " is too narrow for its grid - take a larger one");
  }
  std::vector<Nodes> fine;
  std::vector<ArrayXd> levels, masses;
  for (Index p = 0; p < panels; ++p) {
    fine.push_back(panel_nodes(edges_(p), edges_(p + 1), {}, [&](double r) {
      // Keys beyond count as mass alone.
      return scalar_.level(r, width) > highest ? widest_panel : unit * scalar_.scale(r, width);
    }));
    const ArrayXd& r = fine.back().points;
    levels.push_back(r.unaryExpr([&](double x) { return scalar_.level(x, width); }));
    masses.push_back(fine.back().weights *
                     r.unaryExpr([&](double x) { return scalar_.density(x); }));
  }

  const double start = std::floor(from / sigma_step);
  const auto size = static_cast<Index>(std::ceil(to / sigma_step) - start) + 1;
  Tables tables = {
      .sigma = sigma_step * (start + ArrayXd::LinSpaced(size, 0, static_cast<double>(size - 1))),
      .second = ArrayXd::Zero(size),
      .first = MatrixXd::Zero(coarse_.size(), size),
      .fall = MatrixXd::Zero(coarse_.size(), size),
      .mass = VectorXd::Zero(coarse_.size())};
  // What falls whole, as differences over sigma.
  MatrixXd fallen = MatrixXd::Zero(coarse_.size(), size);
  const auto index_of = [&](double sigma) {
    return std::clamp<Index>(static_cast<Index>(std::ceil(sigma / sigma_step - start)), 0, size);
  };
  for (Index p = 0; p < panels; ++p) {
    const auto at = static_cast<std::size_t>(p);
    const ArrayXd points = coarse_.segment(p * panel_order, panel_order);
    for (Index i = 0; i < levels[at].size(); i += panel_order) {
      const Panel level = levels[at].segment<panel_order>(i);
      const Panel mass = masses[at].segment<panel_order>(i);
      const MatrixXd shares =
          interpolation(points, fine[at].points.segment(i, panel_order)).transpose() *
          mass.matrix().asDiagonal();
      const VectorXd whole = shares.rowwise().sum();
      tables.mass.segment(p * panel_order, panel_order) += whole;
      const Index begin = index_of(level(0) - cut);
      const Index end = index_of(level(panel_order - 1) + above_level);
      Eigen::Array<double, panel_order, Eigen::Dynamic> first(panel_order, end - begin);
      Eigen::Array<double, panel_order, Eigen::Dynamic> fall(panel_order, end - begin);
      // At most `cut` down and, below `above_level` of the highest, a panel up: no overflow.
      Panel x = (tables.sigma(std::min(begin, size - 1)) - level).exp();
      const double grow = std::exp(sigma_step);
      for (Index j = begin; j < end; ++j, x *= grow) {
        const Panel decay = (-x).exp();
        first.col(j - begin) = x * decay;
        fall.col(j - begin) =
            (x < 1e-3).select(x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4))), 1 - decay);
        tables.second(j) += (mass * x * first.col(j - begin)).sum();
      }
      tables.first.block(p * panel_order, begin, panel_order, end - begin) +=
          shares * first.matrix();
      tables.fall.block(p * panel_order, begin, panel_order, end - begin) += shares * fall.matrix();
      if (end < size) fallen.col(end).segment(p * panel_order, panel_order) += whole;
    }
  }
  for (Index j = 1; j < size; ++j) fallen.col(j) += fallen.col(j - 1);
  tables.fall += fallen;
  tables.all_first = tables.first.colwise().sum().transpose();
  tables.all_fall = tables.fall.colwise().sum().transpose();
  return tables;
}

PopulationHead QueryGrid::head(const Tables& tables, std::uint64_t points) const {
  const double n = static_cast<double>(points);
  const ArrayXd all_rest = n * sigma_step * power_of_phi(tables.all_fall, n - 2).col(0);
  // The window of sigma that counts.
  Index begin = 0, end = all_rest.size();
  const auto counts = [&](Index j) { return all_rest(j) * tables.all_first(j) > 1e-17; };
  while (begin + 1 < end && !counts(begin)) ++begin;
  while (end - 1 > begin && !counts(end - 1)) --end;
  const Index size = end - begin;
  const ArrayXd first_sum = tables.all_first.segment(begin, size);
  const VectorXd rest = all_rest.segment(begin, size);
  const VectorXd single =
      n * sigma_step * power_of_phi(tables.all_fall.segment(begin, size), n - 1).col(0);
  const auto first = tables.first.middleCols(begin, size);
  const auto fall = tables.fall.middleCols(begin, size);

  PopulationHead head;
  head.squares = single.dot(tables.second.segment(begin, size).matrix());
  const double one = single.dot(first_sum.matrix()) - 1;
  const double square = (n - 1) * rest.dot(first_sum.square().matrix()) + head.squares - 1;
  // The worse of the two; a NaN is.
  head.normalisation_error = std::abs(one) <= std::abs(square) ? square : one;
  if (std::isnan(square)) head.normalisation_error = square;
  const auto components = static_cast<Index>(correlations_.size());
  for (ArrayXd* figures : {&head.to_query, &head.pairs, &head.one_weight, &head.independent_sets,
                           &head.independent_point}) {
    *figures = ArrayXd::Zero(components);
  }
  if (components == 0) return head;
  const VectorXd window = first * single;
  const MatrixXd weighted = first * rest.asDiagonal();
  const MatrixXd both = weighted * first.transpose();
  const VectorXd total = weighted.rowwise().sum();
  const MatrixXd mixed = total * tables.mass.transpose() - weighted * fall.transpose();
  for (Index c = 0; c < components; ++c) {
    const MatrixXd& table = correlations_[static_cast<std::size_t>(c)];
    head.to_query(c) = near_[static_cast<std::size_t>(c)].dot(window);
    head.pairs(c) = (n - 1) * table.cwiseProduct(both).sum();
    head.one_weight(c) = table.cwiseProduct(mixed).sum();
    const VectorXd turned = table * window;
    head.independent_sets(c) = window.dot(turned);
    head.independent_point(c) = tables.mass.dot(turned);
  }
  return head;
}

/// Lengths of queries with their probabilities, by Kronrod's rule and by Gauss's within it.
struct QueryLengths {
  std::vector<double> q, kronrod, gauss;
};

QueryLengths query_lengths(int k) {
  using Rule = boost::math::quadrature::gauss_kronrod<double, order_of_kronrod>;
  using Coarser = boost::math::quadrature::gauss<double, order_of_gauss>;
  const double middle = std::sqrt(static_cast<double>(k));
  const double from = std::max(0.0, middle - query_reach);
  const double half = (middle + query_reach - from) / 2;
  QueryLengths lengths;
  for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
    for (const double side : {-1.0, 1.0}) {
      if (i == 0 && side > 0) continue;
      const double q = from + half * (1 + side * Rule::abscissa()[i]);
      const double density = half * noncentral_chi_density(k, 0, q);
      lengths.q.push_back(q);
      lengths.kronrod.push_back(density * Rule::weights()[i]);
      lengths.gauss.push_back(
          i % 2 == (order_of_gauss % 2 == 1 ? 0 : 1) ? density * Coarser::weights()[i / 2] : 0);
    }
  }
  return lengths;
}

void add(PopulationHead& sum, const PopulationHead& one, double weight) {
  sum.squares += weight * one.squares;
  if (sum.to_query.size() == 0) {
    for (auto* figures : {&sum.to_query, &sum.pairs, &sum.one_weight, &sum.independent_sets,
                          &sum.independent_point}) {
      *figures = ArrayXd::Zero(one.to_query.size());
    }
  }
  sum.to_query += weight * one.to_query;
  sum.pairs += weight * one.pairs;
  sum.one_weight += weight * one.one_weight;
  sum.independent_sets += weight * one.independent_sets;
  sum.independent_point += weight * one.independent_point;
  if (!(std::abs(one.normalisation_error) <= std::abs(sum.normalisation_error)))
    sum.normalisation_error = one.normalisation_error;
}

double largest_change(const PopulationHead& a, const PopulationHead& b) {
  double change = std::abs(a.squares - b.squares);
  const auto take = [&](const ArrayXd& x, const ArrayXd& y) {
    if (x.size() > 0) change = std::max(change, (x - y).abs().maxCoeff());
  };
  take(a.to_query, b.to_query);
  take(a.pairs, b.pairs);
  take(a.one_weight, b.one_weight);
  take(a.independent_sets, b.independent_sets);
  take(a.independent_point, b.independent_point);
  return change;
}

/// All settings at one query; those of one width stand side by side.
std::vector<PopulationHead> at_query(const PopulationDomain& domain, double q,
                                     std::span<const PopulationSetting> settings) {
  std::uint64_t most = 0;
  for (const PopulationSetting& setting : settings) most = std::max(most, setting.n);
  const QueryGrid grid(domain, q, std::log(static_cast<double>(most)));
  std::vector<PopulationHead> heads;
  Tables tables;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (i == 0 || settings[i].width != settings[i - 1].width) {
      std::uint64_t least = settings[i].n;
      for (std::size_t j = i; j < settings.size() && settings[j].width == settings[i].width; ++j) {
        least = std::min(least, settings[j].n);
      }
      tables = grid.tables(settings[i].width, least);
    }
    heads.push_back(grid.head(tables, settings[i].n));
  }
  return heads;
}

}  // namespace

std::vector<PopulationHead> population_heads(const PopulationDomain& domain,
                                             std::span<const PopulationSetting> settings,
                                             int threads) {
  if (settings.empty()) return {};
  const QueryLengths lengths = query_lengths(domain.k);
  std::vector<std::vector<PopulationHead>> by_query(lengths.q.size());
  parallel_for(by_query.size(), threads,
               [&](std::size_t i) { by_query[i] = at_query(domain, lengths.q[i], settings); });
  std::vector<PopulationHead> heads(settings.size()), coarser(settings.size());
  for (std::size_t i = 0; i < by_query.size(); ++i) {
    for (std::size_t s = 0; s < settings.size(); ++s) {
      add(heads[s], by_query[i][s], lengths.kronrod[i]);
      add(coarser[s], by_query[i][s], lengths.gauss[i]);
    }
  }
  for (std::size_t s = 0; s < settings.size(); ++s) {
    heads[s].change = largest_change(heads[s], coarser[s]);
    require_normalisation(heads[s].normalisation_error, "a head of dimension " +
                                                            std::to_string(domain.k) + " at n " +
                                                            std::to_string(settings[s].n));
  }
  return heads;
}

}  // namespace headlab
