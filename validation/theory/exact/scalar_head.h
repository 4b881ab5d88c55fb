// SPDX-License-Identifier: Apache-2.0
/// \file A head whose kernel sees one scalar of a design point, U = w.X or the radius
/// R = |W^T(x - X)|, and the grids on which its finite-n integrals converge.
///
/// With L = -log K, every integrand is a function of s K = exp(sigma - L), sigma = log s: as a
/// function of u at fixed sigma, and of sigma at fixed u, it changes where L(u) is near sigma, over
/// a unit of either.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "validation/theory/model/model.h"
#include "validation/theory/model/panels.h"

namespace headlab {

/// How fine a grid is and how far it reaches: errors of about exp(-digits) are aimed at.
struct Resolution {
  double digits;
  /// Nodes of a scalar's grid, beyond which panels are widened instead.
  Eigen::Index max_nodes;
  /// Heads or pairs computed at once, each with tables of its own.
  int at_once = 1;

  double reach() const;   ///< of the design, in standard deviations
  double widest() const;  ///< panel on a Gaussian density, in standard deviations
};

/// N(mean, sd^2), a component's law of a scalar; of a radius, only where its mass is.
struct ScalarLaw {
  double mean = 0;
  double sd = 1;

  /// Density at each of `points`, sd > 0.
  Eigen::ArrayXd density(const Eigen::ArrayXd& points) const;
};

/// Points whose L = -log K lies in (from, to].
struct LevelRange {
  double from = -std::numeric_limits<double>::infinity();
  double to = std::numeric_limits<double>::infinity();
};

/// One head: -log K as a function of u = direction.X or u = |W^T(x - X)|, up to a constant.
struct ScalarHead {
  Eigen::VectorXd direction;  ///< w [d], a unit vector; not for radii
  bool softmax = false;
  int dimension = 1;            ///< k > 1: u is a radius, and X ~ N(0, I)
  double distance = 0;          ///< radius: |W^T x|
  double centre = 0;            ///< Gaussian: w.x
  double rate = 1;              ///< Gaussian: 1/b; softmax: |a|, a = P x / t
  std::vector<double> weights;  ///< of the design's components
  std::vector<ScalarLaw> laws;  ///< of U, a component each
  /// Points are those of the design given L <= cut; others are not there.
  double cut = std::numeric_limits<double>::infinity();

  /// L = rate^2 (u - centre)^2 / 2 (Gaussian), -rate u (softmax).
  Eigen::ArrayXd minus_log_kernel(const Eigen::ArrayXd& u) const;
  /// Length over which L changes by about one.
  double scale(double u) const;
  /// |dL/du| where L = level; 0 below the least value of L.
  double steepness(double level) const;
  /// P(L > level).
  double survival(double level) const;
  /// P(L <= level) of the design, whatever the cut, with the accuracy of a small number.
  double mass_within(double level) const;
  /// The level within which the design has this mass, 0 < mass < 1.
  double level_of_mass(double mass) const;
  /// Where u may be for levels in a range: two intervals or one, one of them may be empty.
  std::vector<std::pair<double, double>> intervals(const LevelRange& levels) const;
  /// Whether every point has the same weight.
  bool is_constant() const;
};

/// The head of a model at one query, U = w.X. Gaussian kernels must have k = 1.
ScalarHead scalar_head(const TheoryModel& model, const Eigen::VectorXd& query, std::size_t head);

/// A Gaussian head of k dimensions as a function of the radius, X ~ N(0, I). For k = 1 the radius
/// is signed, q - U where q >= 0 and U - q elsewhere.
/// \param distance |W^T x| >= 0
/// \param bandwidth b > 0
ScalarHead radial_head(int k, double distance, double bandwidth);

/// Density of a radial head's |W^T(x - X)| at each of `radius`: noncentral chi.
Eigen::ArrayXd radial_density(const ScalarHead& head, const Eigen::ArrayXd& radius);

/// Where in sigma a head's integrals over n points lie.
struct SigmaRange {
  double from;  ///< below and above, integrals are smaller than exp(-digits)
  double to;
  double knee;  ///< below it, integrands are powers of s
  /// phi(s)^n <= exp(-loss[j]) from the j-th of equal steps of [from, to] on; increasing.
  Eigen::ArrayXd loss;

  double loss_at(double sigma) const;
  /// Least -log of the share in the integrals of what happens where L = level.
  double loss_of_level(double level) const;
};
SigmaRange sigma_range(const ScalarHead& head, std::uint64_t n, const Resolution& resolution);

/// What is known of a kernel's values over the design.
struct KernelLevels {
  double log_mean;  ///< log E K, or a bound from above
  double least;     ///< of L over the reach of the design
  double largest;
  std::function<double(double)> survival;  ///< P(L > level), or a bound from above
};
SigmaRange sigma_range(const KernelLevels& kernel, std::uint64_t n, const Resolution& resolution);

/// Nodes in sigma that resolve single design points.
Nodes sigma_nodes(const SigmaRange& range, const Resolution& resolution);

/// Nodes in sigma. `smoothing`, in the units of the scalar, is the least standard deviation over
/// which expectations average before sigma is integrated over: beyond it panels need not resolve
/// single design points.
Nodes sigma_nodes(const ScalarHead& head, const SigmaRange& range, std::uint64_t n,
                  double smoothing, const Resolution& resolution);

/// A head as seen from a grid of u: its own scalar is offset + slope u there.
struct Sight {
  const ScalarHead& head;
  const SigmaRange& range;
  double offset = 0;
  double slope = 1;
  double loss_share = 1;  ///< of its level, what others may leave of it
};

/// Nodes over the reach of a law, weighted by length, that resolve every head in sight. A law
/// without spread has one node of weight one.
/// \param widest bound on panels, in units of u
/// \param levels of the first head in sight; points of others have no node
Nodes scalar_nodes(const ScalarLaw& law, const std::vector<Sight>& sights, double widest,
                   const Resolution& resolution, const LevelRange& levels = {});

/// Probabilities of a law's nodes.
Eigen::ArrayXd masses(const Nodes& nodes, const ScalarLaw& law);

}  // namespace headlab
