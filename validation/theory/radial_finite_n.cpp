// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/radial_finite_n.h"

#include <cmath>
#include <complex>
#include <numbers>
#include <variant>
#include <vector>

#include "validation/theory/scalar_tables.h"

namespace headlab {
namespace {

using Complex = std::complex<double>;
using Eigen::ArrayXcd;
using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXcd;
using Eigen::MatrixXd;
using Eigen::VectorXcd;
using Eigen::VectorXd;

/// Re sum_j amplitude_j exp(i frequency_j.X).
struct Waves {
  VectorXcd amplitude;
  MatrixXd frequency;  ///< [terms][d]
};

/// m - m(x).
Waves centred_regression(const TheoryModel& model, double truth) {
  const auto* cosines = model.zero_regression
                            ? nullptr
                            : dynamic_cast<const CosineSumFunction*>(model.regression.get());
  const Index d = model.projections[0].rows();
  const Index terms = cosines ? cosines->amplitude().size() : 0;
  if (terms == 0) return {VectorXcd(0), MatrixXd(0, d)};
  Waves waves = {VectorXcd(terms + 1), MatrixXd::Zero(terms + 1, d)};
  for (Index j = 0; j < terms; ++j) {
    waves.amplitude(j) = std::polar(1.0, cosines->phase()(j)) * cosines->amplitude()(j);
  }
  waves.frequency.topRows(terms) = cosines->frequency();
  waves.amplitude(terms) = -truth;
  return waves;
}

/// (Re sum_j a_j e_j)^2 = Re sum_{i,j} (a_i a_j e_i e_j + a_i conj(a_j) e_i conj(e_j))/2.
Waves squared(const Waves& waves) {
  const Index terms = waves.amplitude.size();
  Waves square = {VectorXcd(terms * (terms + 1)),
                  MatrixXd(terms * (terms + 1), waves.frequency.cols())};
  Index next = 0;
  for (Index i = 0; i < terms; ++i) {
    for (Index j = 0; j <= i; ++j) {
      const Complex both = waves.amplitude(i) * (i == j ? 0.5 : 1.0);
      square.amplitude(next) = both * waves.amplitude(j);
      square.frequency.row(next++) = waves.frequency.row(i) + waves.frequency.row(j);
      square.amplitude(next) = both * std::conj(waves.amplitude(j));
      square.frequency.row(next++) = waves.frequency.row(i) - waves.frequency.row(j);
    }
  }
  return square;
}

/// A head's grid, its projected query, and its integrals over the radius.
struct RadialGrid {
  const MatrixXd& frame;
  VectorXd q;
  ScalarHead head;
  SigmaRange range;
  Nodes sigma;
  Nodes radius;

  RadialGrid(const TheoryModel& model, std::size_t query, std::size_t h,
             const Resolution& resolution)
      : frame(model.projections[h]),
        q(frame.transpose() * model.queries[query]),
        head(radial_head(static_cast<int>(frame.cols()), q.norm(),
                         std::get<GaussianKernel>(model.kernel).bandwidth)),
        range(sigma_range(head, model.n, resolution)),
        sigma(sigma_nodes(head, range, model.n, 1, resolution)),
        radius(scalar_nodes(head.laws[0], {{head, range}}, resolution.widest(), resolution)) {}

  /// Node weights times J_v, [radius][term].
  MatrixXcd waves(const MatrixXd& frequency) const {
    MatrixXcd table(radius.points.size(), frequency.rows());
    for (Index j = 0; j < frequency.rows(); ++j) {
      table.col(j) =
          radial_wave(frame.transpose() * frequency.row(j).transpose(), q, radius.points) *
          radius.weights;
    }
    return table;
  }
};

/// Amplitudes with what the coordinates outside the heads' subspaces average to.
VectorXcd damped(const Waves& waves, const std::vector<const MatrixXd*>& frames) {
  VectorXcd amplitude = waves.amplitude;
  for (Index j = 0; j < amplitude.size(); ++j) {
    double outside = waves.frequency.row(j).squaredNorm();
    for (const MatrixXd* frame : frames) {
      outside -= (waves.frequency.row(j) * *frame).squaredNorm();
    }
    amplitude(j) *= std::exp(-outside / 2);
  }
  return amplitude;
}

/// One head's share of an orthogonal pair's integrals.
struct Share {
  MatrixXcd first;       ///< E[e_j sK e^(-sK)], [sigma][term], the constant 1 last
  MatrixXcd rest;        ///< E[e_j e^(-sK)]
  VectorXcd of_squares;  ///< int E[e sK e^(-sK)] phi^(n-1) d sigma, terms of m^2, 1 last
  ArrayXd weights;       ///< of sigma times phi^(n-2)

  Share(const RadialGrid& grid, double n, const MatrixXd& terms, const MatrixXd& squares) {
    const KernelTable table =
        kernel_table(grid.head.minus_log_kernel(grid.radius.points), grid.sigma.points);
    const MatrixXcd waves = grid.waves(with_constant(terms));
    first = table.first.transpose().cast<Complex>() * waves;
    rest = -(table.fall.transpose().cast<Complex>() * waves);
    const ArrayXd fall = -rest.col(rest.cols() - 1).real().array();
    rest.rowwise() += waves.colwise().sum();
    weights = grid.sigma.weights * power_of_phi(fall, n - 2).col(0);
    const VectorXd others = (grid.sigma.weights * power_of_phi(fall, n - 1).col(0)).matrix();
    of_squares =
        (table.first * others).cast<Complex>().transpose() * grid.waves(with_constant(squares));
  }

  static MatrixXd with_constant(const MatrixXd& frequency) {
    MatrixXd all = MatrixXd::Zero(frequency.rows() + 1, frequency.cols());
    all.topRows(frequency.rows()) = frequency;
    return all;
  }
};

}  // namespace

ArrayXcd radial_wave(const VectorXd& v, const VectorXd& q, const ArrayXd& radius) {
  static const Nodes angles =
      panel_nodes(0, std::numbers::pi, {}, [](double) { return std::numbers::pi / 8; });
  const double k = static_cast<double>(q.size());
  const ArrayXd cosine = angles.points.cos();
  const ArrayXd sine = angles.weights * angles.points.sin().pow(k - 2);
  // (2 pi)^(-k/2) |S^(k-2)|
  const double log_factor = std::log(2.0) + (k - 1) / 2 * std::log(std::numbers::pi) -
                            std::lgamma((k - 1) / 2) - k / 2 * std::log(2 * std::numbers::pi);
  const Complex root = std::sqrt(Complex(q.squaredNorm() - v.squaredNorm(), -2 * q.dot(v)));
  ArrayXcd wave(radius.size());
  for (Index i = 0; i < radius.size(); ++i) {
    const double r = radius(i);
    const Complex exponent(log_factor + (k - 1) * std::log(r) - (r * r + q.squaredNorm()) / 2,
                           v.dot(q));
    Complex sum = 0;
    for (Index a = 0; a < cosine.size(); ++a) {
      sum += sine(a) * std::exp(exponent + r * root * cosine(a));
    }
    wave(i) = sum;
  }
  return wave;
}

HeadMoments radial_head_moments(const TheoryModel& model, std::size_t query, std::size_t head,
                                const Resolution& resolution) {
  const RadialGrid grid(model, query, head, resolution);
  const Waves regression = centred_regression(model, model.truth[query]);
  const Waves square = squared(regression);
  const MatrixXd none = MatrixXd::Zero(1, grid.frame.rows());
  DesignNodes nodes = {.level = grid.head.minus_log_kernel(grid.radius.points),
                       .probability = grid.waves(none).real(),
                       .mean = VectorXd::Zero(grid.radius.points.size()),
                       .square = VectorXd::Zero(grid.radius.points.size())};
  nodes.square = model.noise_sd * model.noise_sd * nodes.probability;
  if (regression.amplitude.size() > 0) {
    nodes.mean += (grid.waves(regression.frequency) * damped(regression, {&grid.frame})).real();
    nodes.square += (grid.waves(square.frequency) * damped(square, {&grid.frame})).real();
  }
  HeadMoments moments = head_moments(model.n, grid.sigma, {nodes});
  moments.coarsened = grid.radius.coarsened;
  return moments;
}

PairMoments orthogonal_pair_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                    std::size_t l, const Resolution& resolution) {
  const double n = static_cast<double>(model.n);
  const RadialGrid grid_h(model, query, h, resolution);
  const RadialGrid grid_l(model, query, l, resolution);
  const Waves regression = centred_regression(model, model.truth[query]);
  const Waves square = squared(regression);
  const Share of_h(grid_h, n, regression.frequency, square.frequency);
  const Share of_l(grid_l, n, regression.frequency, square.frequency);

  const VectorXcd squares = damped(square, {&grid_h.frame, &grid_l.frame});
  const VectorXcd products = of_h.of_squares.cwiseProduct(of_l.of_squares);
  const double alone = products(products.size() - 1).real();
  PairMoments moments;
  moments.coarsened = grid_h.radius.coarsened || grid_l.radius.coarsened;
  moments.certificate = n * alone - 1;
  moments.product = n * (model.noise_sd * model.noise_sd * alone +
                         (squares.transpose() * products.head(squares.size())).sum().real());
  if (model.n == 1) return moments;

  // int E[K_h e_i e^(..)] E[K_l e_j e^(..)], whose factors are one head's each; e_j or its
  // conjugate.
  const auto one = [](const Share& share) {
    return share.weights.matrix().cast<Complex>().asDiagonal();
  };
  const MatrixXcd plain_h = of_h.first.transpose() * (one(of_h) * of_h.rest);
  const MatrixXcd plain_l = of_l.rest.transpose() * (one(of_l) * of_l.first);
  const MatrixXcd conjugate_h = of_h.first.transpose() * (one(of_h) * of_h.rest.conjugate());
  const MatrixXcd conjugate_l = of_l.rest.transpose() * (one(of_l) * of_l.first.conjugate());
  const Index terms = regression.amplitude.size();
  moments.certificate += n * (n - 1) * (plain_h(terms, terms) * plain_l(terms, terms)).real();
  const VectorXcd amplitude = damped(regression, {&grid_h.frame, &grid_l.frame});
  Complex sum = 0;
  for (Index i = 0; i < terms; ++i) {
    for (Index j = 0; j < terms; ++j) {
      sum += amplitude(i) * (amplitude(j) * plain_h(i, j) * plain_l(i, j) +
                             std::conj(amplitude(j)) * conjugate_h(i, j) * conjugate_l(i, j));
    }
  }
  moments.product += n * (n - 1) * sum.real() / 2;
  return moments;
}

}  // namespace headlab
