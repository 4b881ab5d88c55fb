// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/radial_finite_n.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <tuple>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "kernels/decompositions.h"
#include "kernels/kernel_laws.h"
#include "kernels/statistics/stopping.h"
#include "validation/theory/exact/pair_sums.h"
#include "validation/theory/exact/scalar_tables.h"

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
    stop_point();
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

/// Amplitudes with what the coordinates outside the heads' subspaces average to.
/// \param inside [terms], |W^T v|^2 summed over the heads
VectorXcd damped(const Waves& waves, const ArrayXd& inside) {
  const ArrayXd outside = waves.frequency.rowwise().squaredNorm().array() - inside;
  return (waves.amplitude.array() * (-outside / 2).exp()).matrix();
}

/// Gauss's rule for the mean of a function of cos A, A the angle between a direction in k
/// dimensions and a random one, of density ~ (1 - c^2)^((k-3)/2), k >= 2. It is symmetric: of the
/// nodes c and -c, which weigh the same, the positive one is kept.
struct DirectionRule {
  ArrayXd cosine;
  ArrayXd weight;

  DirectionRule(int k, Index points) {
    // Golub and Welsch (1969); the recurrence of Gegenbauer polynomials.
    const double lambda = (k - 2) / 2.0;
    VectorXd off_diagonal(points - 1);
    for (Index j = 1; j < points; ++j) {
      const auto n = static_cast<double>(j);
      const double square = j == 1
                                ? 1 / (2 * (lambda + 1))
                                : n * (n + 2 * lambda - 1) / (4 * (n + lambda) * (n + lambda - 1));
      off_diagonal(j - 1) = std::sqrt(square);
    }
    const SymmetricEigen eigen = tridiagonal_eigen(VectorXd::Zero(points), off_diagonal);
    cosine = eigen.values.tail(points / 2).array();
    weight = eigen.vectors.row(0).tail(points / 2).array().square();
  }
};

/// |z| up to which 8 * 2^j nodes give E e^(z cos A) to rounding: 2 (|z|/2)^(2N)/(2N)! <= 1e-15.
constexpr std::array<double, 7> rule_reaches = {1.5, 8.5, 28, 73, 166, 354, 731};

/// A rule for arguments of up to this size, with its reach. Rules are made when first wanted.
std::pair<const DirectionRule*, double> direction_rule(int k, double size) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::size_t>, DirectionRule> rules;
  const auto reach = std::ranges::lower_bound(rule_reaches, size);
  if (reach == rule_reaches.end()) {
    throw InvalidInput(
        "exact finite-n theory does not resolve a query so far out, or a regression of such high "
        "frequencies - simulate with headlab run");
  }
  const auto step = static_cast<std::size_t>(reach - rule_reaches.begin());
  const std::scoped_lock lock(mutex);
  const auto [rule, is_new] = rules.try_emplace({k, step}, k, Index{8} << step);
  return {&rule->second, *reach};
}

/// A head with orthonormal columns, and its projected query.
struct RadialFrame {
  double length;   ///< of the columns that it was given
  MatrixXd frame;  ///< [d][k], orthonormal
  VectorXd q;
  ScalarHead head;

  RadialFrame(const TheoryModel& model, const VectorXd& query, std::size_t h)
      : length(column_length(model.projections[h])),
        frame(model.projections[h] / length),
        q(frame.transpose() * query),
        head(radial_head(static_cast<int>(frame.cols()), q.norm(),
                         std::get<GaussianKernel>(*model.kernel).bandwidth / length)) {}

 private:
  /// 1 to rounding is 1.
  static double column_length(const MatrixXd& columns) {
    const double norm = columns.col(0).norm();
    return std::abs(norm - 1) < 1e-12 ? 1 : norm;
  }
};

/// The same with a grid and its integrals over the radius.
struct RadialGrid : RadialFrame {
  Nodes radius;

  RadialGrid(const TheoryModel& model, const VectorXd& query, std::size_t h,
             const SigmaRange& range, const Resolution& resolution, const LevelRange& levels)
      : RadialFrame(model, query, h),
        radius(
            scalar_nodes(head.laws[0], {{head, range}}, resolution.widest(), resolution, levels)) {}

  /// Node weights times J_v, [radius], v = W^T frequency.
  VectorXcd wave(const VectorXd& frequency) const {
    return (radial_wave(frame.transpose() * frequency, q, radius.points) * radius.weights).matrix();
  }
  /// |W^T frequency|^2, [terms].
  ArrayXd inside(const Waves& waves) const {
    return (waves.frequency * frame).rowwise().squaredNorm().array();
  }
  /// [radius][terms + 1], the constant 1 last.
  MatrixXcd waves(const Waves& regression) const {
    const Index terms = regression.amplitude.size();
    MatrixXcd all(radius.points.size(), terms + 1);
    for (Index j = 0; j < terms; ++j) all.col(j) = wave(regression.frequency.row(j));
    all.col(terms) = wave(VectorXd::Zero(frame.rows()));
    return all;
  }
  /// The nodes with the response, from waves of the regression and amplitudes of its square.
  /// visit(j, wave) is called for each term of the square.
  template <class Visit>
  DesignNodes nodes(const TheoryModel& model, const MatrixXcd& waves, const Waves& regression,
                    const Waves& square, const Visit& visit) const {
    const Index terms = regression.amplitude.size();
    DesignNodes design;
    design.level = head.minus_log_kernel(radius.points);
    design.probability = waves.col(terms).real();
    design.mean = (waves.leftCols(terms) * damped(regression, inside(regression))).real();
    design.square = model.noise_sd * model.noise_sd * design.probability;
    design.coarsened = radius.coarsened;
    const VectorXcd amplitude = damped(square, inside(square));
    for (Index j = 0; j < square.amplitude.size(); ++j) {
      const VectorXcd at = wave(square.frequency.row(j));
      design.square += (at * amplitude(j)).real();
      visit(j, at);
    }
    return design;
  }
};

}  // namespace

ArrayXcd radial_wave(const VectorXd& v, const VectorXd& q, const ArrayXd& radius) {
  const int k = static_cast<int>(q.size());
  ArrayXcd wave(radius.size());
  if (k == 1) {
    for (Index i = 0; i < radius.size(); ++i) {
      const double u = q(0) - std::copysign(1.0, q(0)) * radius(i);
      wave(i) = std::polar(std::exp(-u * u / 2) / std::sqrt(2 * std::numbers::pi), v(0) * u);
    }
    return wave;
  }
  // (2 pi)^(-k/2) |S^(k-1)|
  const double log_factor = (1 - k / 2.0) * std::log(2.0) - std::lgamma(k / 2.0);
  const Complex root = std::sqrt(Complex(q.squaredNorm() - v.squaredNorm(), -2 * q.dot(v)));
  const DirectionRule* rule = nullptr;
  double reach = 0;
  for (Index i = 0; i < radius.size(); ++i) {
    const double r = radius(i);
    const double size = r * std::abs(root);
    if (rule == nullptr || size > reach) std::tie(rule, reach) = direction_rule(k, size);
    const double level = log_factor + (k - 1) * std::log(r) - (r * r + q.squaredNorm()) / 2;
    Complex sum = 0;
    for (Index a = 0; a < rule->cosine.size(); ++a) {
      // Before the level is added e^(z cos A) may be out of range.
      const Complex z = r * root * rule->cosine(a);
      sum += rule->weight(a) * (std::polar(std::exp(level + z.real()), z.imag()) +
                                std::polar(std::exp(level - z.real()), -z.imag()));
    }
    wave(i) = sum * std::polar(1.0, v.dot(q));
  }
  return wave;
}

/// One head at one resolution.
struct RadialHeads::Share {
  Nodes sigma;
  DesignNodes nodes;
  ArrayXd regression_inside;  ///< [terms], |W^T v|^2
  ArrayXd square_inside;
  // Integrals over sigma, with e_j = exp(i v_j.U) of each term, the constant 1 last.
  VectorXcd of_squares;  ///< int E[e sK e^(-sK)] phi^(n-1) d sigma, e of the squared regression
  VectorXcd alone;       ///< the same, e of the regression
  MatrixXcd plain;       ///< int E[e_i sK e^(-sK)] E[e_j e^(-sK)] phi^(n-2) d sigma
  MatrixXcd conjugate;   ///< the same with the conjugate of e_j

  Share(const TheoryModel& model, const VectorXd& query, const Waves& regression,
        const Waves& square, std::size_t h, const Resolution& resolution) {
    const ScalarHead head = RadialFrame(model, query, h).head;
    const SigmaRange range = sigma_range(head, model.tokens(h), resolution);
    const RadialGrid grid(model, query, h, range, resolution, {});
    const auto n = static_cast<double>(model.tokens(h));
    sigma = sigma_nodes(head, range, model.tokens(h), 1, resolution);
    // Tables and their complex copies, with the waves.
    const auto radii = static_cast<double>(grid.radius.points.size());
    const auto sigmas = static_cast<double>(sigma.points.size());
    const auto waves_of_terms = 2 * static_cast<double>(regression.amplitude.size() + 1);
    require_table_memory(4 * radii * sigmas + waves_of_terms * (radii + 4 * sigmas),
                         resolution.at_once);
    regression_inside = grid.inside(regression);
    square_inside = grid.inside(square);
    const Index terms = regression.amplitude.size();
    const MatrixXcd waves = grid.waves(regression);

    const KernelTable table =
        kernel_table(grid.head.minus_log_kernel(grid.radius.points), sigma.points);
    const MatrixXcd first = table.first.transpose().cast<Complex>() * waves;
    MatrixXcd rest = -(table.fall.transpose().cast<Complex>() * waves);
    const ArrayXd fall = -rest.col(terms).real().array();
    rest.rowwise() += waves.colwise().sum();
    const VectorXcd others =
        (sigma.weights * power_of_phi(fall, n - 2).col(0)).matrix().cast<Complex>();
    plain = first.transpose() * (others.asDiagonal() * rest);
    conjugate = first.transpose() * (others.asDiagonal() * rest.conjugate());

    const VectorXcd window =
        (table.first * (sigma.weights * power_of_phi(fall, n - 1).col(0)).matrix()).cast<Complex>();
    alone = waves.transpose() * window;
    const Index squares = square.amplitude.size();
    of_squares.resize(squares + 1);
    of_squares(squares) = window.cwiseProduct(waves.col(terms)).sum();
    nodes = grid.nodes(model, waves, regression, square, [&](Index j, const VectorXcd& wave) {
      of_squares(j) = window.cwiseProduct(wave).sum();
    });
  }
};

RadialHeads::RadialHeads(const TheoryModel& model, std::size_t query)
    : model_(model),
      query_(model.queries[query]),
      regression_(centred_regression(model, model.truth[query])),
      square_(squared(regression_)),
      shares_(model.projections.size()) {}

RadialHeads::~RadialHeads() = default;

const RadialHeads::Share& RadialHeads::share(std::size_t h, const Resolution& resolution) {
  const std::scoped_lock lock(shares_[h].mutex);
  std::unique_ptr<const Share>& made = shares_[h].by_digits[resolution.digits];
  if (!made) {
    made = std::make_unique<const Share>(model_, query_, regression_, square_, h, resolution);
  }
  return *made;
}

ScalarHead RadialHeads::radial(std::size_t h) const {
  return RadialFrame(model_, query_, h).head;
}

std::vector<DesignNodes> RadialHeads::design(std::size_t h, const SigmaRange& range,
                                             const Resolution& resolution,
                                             const LevelRange& levels) const {
  const RadialGrid grid(model_, query_, h, range, resolution, levels);
  return {grid.nodes(model_, grid.waves(regression_), regression_, square_,
                     [](Index, const VectorXcd&) {})};
}

HeadMoments RadialHeads::head(std::size_t h, const Resolution& resolution) {
  const Share& own = share(h, resolution);
  HeadMoments moments = head_moments(model_.tokens(h), own.sigma, {own.nodes});
  moments.coarsened = own.nodes.coarsened;
  return moments;
}

PairMoments RadialHeads::pair(std::size_t h, std::size_t l, const Resolution& resolution) {
  const PairTokens tokens(model_, h, l);
  const Share& of_h = share(h, resolution);
  const Share& of_l = share(l, resolution);
  const VectorXcd squares = damped(square_, of_h.square_inside + of_l.square_inside);
  const VectorXcd products = of_h.of_squares.cwiseProduct(of_l.of_squares);
  const double alone = products(products.size() - 1).real();
  PairMoments moments;
  moments.coarsened = of_h.nodes.coarsened || of_l.nodes.coarsened;
  moments.normalisation_error = tokens.both * alone - 1;
  moments.product =
      tokens.both * (model_.noise_sd * model_.noise_sd * alone +
                     (squares.transpose() * products.head(squares.size())).sum().real());

  // Two tokens, with the response of the first in head h and that of the second in head l: all
  // expectations have factors that are one head's each.
  const Index terms = regression_.amplitude.size();
  // Re(A) Re(B) = Re(A B + A conj B)/2, from both matrices [A][B] of the factors, the constant
  // last.
  const auto add = [&](double pairs, const MatrixXcd& plain, const MatrixXcd& conjugate,
                       const VectorXcd& a, const VectorXcd& b) {
    if (pairs <= 0) return;
    moments.normalisation_error += pairs * plain(terms, terms).real();
    const VectorXcd sums = plain.topLeftCorner(terms, terms) * b +
                           conjugate.topLeftCorner(terms, terms) * b.conjugate();
    moments.product += pairs * (a.transpose() * sums).sum().real() / 2;
  };
  // Amplitudes of a token that both heads see, or one of them.
  const VectorXcd a = damped(regression_, of_h.regression_inside + of_l.regression_inside);
  const VectorXcd a_h = damped(regression_, of_h.regression_inside);
  const VectorXcd a_l = damped(regression_, of_l.regression_inside);
  const VectorXcd one_h = of_h.alone;
  const VectorXcd one_l = of_l.alone;
  const auto times = [](const MatrixXcd& x, const MatrixXcd& y) -> MatrixXcd {
    return x.cwiseProduct(y);
  };
  // int E[K_h e_i e^(..)] E[K_l e_j e^(..)], e_j or its conjugate.
  add(tokens.both * (tokens.both - 1), times(of_h.plain, of_l.plain.transpose()),
      times(of_h.conjugate, of_l.conjugate.adjoint()), a, a);
  add(tokens.both * tokens.second, one_h.asDiagonal() * of_l.plain.transpose(),
      one_h.asDiagonal() * of_l.conjugate.adjoint(), a, a_l);
  add(tokens.first * tokens.both, of_h.plain * one_l.asDiagonal(),
      of_h.conjugate * one_l.conjugate().asDiagonal(), a_h, a);
  add(tokens.first * tokens.second, one_h * one_l.transpose(), one_h * one_l.adjoint(), a_h, a_l);
  return moments;
}

PairMoments RadialHeads::aligned_pair(std::size_t h, std::size_t l, const Resolution& resolution) {
  const PairTokens tokens(model_, h, l);
  const ScalarHead head = radial(h);
  // One grid of the radius for both, as fine as the head that sees fewer tokens needs it.
  const auto range_of = [&](std::size_t i) {
    return sigma_range(head, model_.tokens(i), resolution);
  };
  const SigmaRange sigma_reach = range_of(h);
  const SigmaRange tau_reach = range_of(l);
  const DesignNodes nodes =
      design(h, model_.tokens(h) < model_.tokens(l) ? sigma_reach : tau_reach, resolution, {})
          .at(0);
  const Nodes sigma = sigma_nodes(sigma_reach, resolution);
  const Nodes tau = sigma_nodes(tau_reach, resolution);
  const auto radii = static_cast<double>(nodes.level.size());
  const auto sigmas = static_cast<double>(sigma.points.size());
  const auto taus = static_cast<double>(tau.points.size());
  require_table_memory(radii * (2 * sigmas + 7 * taus) + 14 * sigmas * taus, resolution.at_once);
  const KernelTable first = kernel_table(nodes.level, sigma.points);
  const KernelTable second = kernel_table(nodes.level, tau.points);
  GivenFirst given;
  given.mean = nodes.mean;
  given.fall = nodes.probability.asDiagonal() * second.fall;
  given.first = nodes.probability.asDiagonal() * second.first;
  given.mean_rest = nodes.mean.asDiagonal() * (1 - second.fall.array()).matrix();
  given.mean_first = nodes.mean.asDiagonal() * second.first;
  given.square_first = nodes.square.asDiagonal() * second.first;
  LevelPairSums sums(sigma.points.size(), tau.points.size());
  sums.add(first, nodes.probability, given);
  PairMoments moments = sums.integrate(tokens, sigma.weights, tau.weights);
  moments.coarsened = nodes.coarsened;
  return moments;
}

}  // namespace headlab
