// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "validation/theory/exact/scalar_tables.h"
#include "validation/theory/mechanisms/finite_n_tokens.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// n rank^2 numbers are multiplied for each node of sigma.
constexpr double max_work = 3e7;

/// Eigenvalues of a step below exp(-digits) are left out.
Index rank_of_step(double correlation, double digits) {
  return static_cast<Index>(std::ceil(-digits / std::log(std::abs(correlation)))) + 1;
}

/// sqrt(mass) h_k(z), [node][k], of the orthonormal Hermite polynomials.
MatrixXd hermite_functions(const ArrayXd& z, const ArrayXd& mass, Index rank) {
  MatrixXd h(z.size(), rank);
  h.col(0) = mass.sqrt();
  if (rank > 1) h.col(1) = (z * h.col(0).array()).matrix();
  for (Index k = 2; k < rank; ++k) {
    const auto degree = static_cast<double>(k);
    h.col(k) = ((z * h.col(k - 1).array() - std::sqrt(degree - 1) * h.col(k - 2).array()) /
                std::sqrt(degree))
                   .matrix();
  }
  return h;
}

/// Chain of factors at one sigma.
struct Chain {
  const MatrixXd& hermite;
  ArrayXd powers;  ///< of the correlation, [rank]

  /// (E h_j f h_k), f at each node: symmetric, so that half of it is computed.
  MatrixXd factor(const ArrayXd& f) const {
    MatrixXd half = MatrixXd::Zero(hermite.cols(), hermite.cols());
    half.triangularView<Eigen::Lower>() = hermite.transpose() * (f.matrix().asDiagonal() * hermite);
    return half.selfadjointView<Eigen::Lower>();
  }
  VectorXd step(const VectorXd& state) const { return (powers * state.array()).matrix(); }
};

/// Var(m | U) at most this, relative to E m^2, is none.
constexpr double noise_of_rounding = 1e-12;

bool is_function_of_scalar(const TheoryModel& model, double truth, const ScalarHead& head) {
  if (model.zero_regression) return true;
  const ScalarLaw& law = head.laws[0];
  TheoryModel noiseless = model;
  noiseless.constant_noise = true;
  noiseless.noise_sd = 0;
  const ResponseMoments response(noiseless, truth, model.design.components[0],
                                 head.direction / law.sd);
  for (const double z : {-1.3, -0.4, 0.2, 0.9, 1.7}) {
    const FunctionMoments m = response(VectorXd::Constant(1, z));
    if (m.mean_square - m.mean * m.mean > noise_of_rounding * (1 + m.mean_square)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> sequence_obstacle(const TheoryModel& model, std::size_t query,
                                             std::size_t h) {
  const std::string of = "data.sequence: dependent points have a closed form ";
  if (model.projections[h].cols() != 1 && !model.is_softmax())
    return of + "with heads.dim = 1 or the softmax kernel" + simulation_instead;
  if (model.design.components.size() != 1 || !model.constant_noise)
    return of + "on a normal design with noise of constant variance" + simulation_instead;
  if (!model.levels.empty()) return of + "without levels" + simulation_instead;
  if (model.seen_by(h).sinks > 0)
    return of + "where a head sees successive tokens" + simulation_instead;
  const ScalarHead head = scalar_head(model, model.queries[query], h);
  if (!(head.laws[0].sd > 0)) return of + "where heads see the points" + simulation_instead;
  if (!is_function_of_scalar(model, model.truth[query], head))
    return of + "where the regression is a function of what the head sees" + simulation_instead;
  const double rank = static_cast<double>(rank_of_step(model.correlation, 36));
  if (static_cast<double>(model.tokens(h)) * rank * rank > max_work)
    return of + "where n and the correlation are not so large" + simulation_instead;
  return std::nullopt;
}

SequenceMoments sequence_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                 const Resolution& resolution) {
  const ScalarHead head = scalar_head(model, model.queries[query], h);
  const ScalarLaw& law = head.laws[0];
  const std::uint64_t tokens = model.tokens(h);
  const auto n = static_cast<Index>(tokens);
  const double phi = std::abs(model.correlation);
  const Index rank = rank_of_step(phi, resolution.digits + 4);

  // E prod f(U_i) <= prod (E f^p)^(1/p) with p the largest eigenvalue of the correlations, below
  // (1 + phi)/(1 - phi) (Brascamp and Lieb): as n/p independent points.
  const auto independent = static_cast<std::uint64_t>(
      std::max(1.0, std::floor(static_cast<double>(n) * (1 - phi) / (1 + phi))));
  SigmaRange range = sigma_range(head, independent, resolution);
  const SigmaRange of_all = sigma_range(head, tokens, resolution);
  range.from = of_all.from;
  range.knee = of_all.knee;
  const Nodes sigma = sigma_nodes(range, resolution);
  // A panel resolves four waves of the product of two Hermite functions.
  const double widest =
      law.sd * std::min(resolution.widest(), 4 / std::sqrt(static_cast<double>(rank)));
  const Nodes u = scalar_nodes(law, {{head, range}}, widest, resolution);
  const ArrayXd z = (u.points - law.mean) / law.sd;
  const ArrayXd mass = masses(u, law);
  require_table_memory(static_cast<double>(u.points.size() * (3 * rank + 2 * sigma.points.size())),
                       resolution.at_once);
  const MatrixXd hermite = hermite_functions(z, mass, rank);
  const KernelTable table = kernel_table(head.minus_log_kernel(u.points), sigma.points);

  // Neither sign of the correlation nor the scalar's direction matters to products of two.
  Chain chain = {hermite, ArrayXd(rank)};
  for (Index k = 0; k < rank; ++k)
    chain.powers(k) = std::pow(model.correlation, static_cast<double>(k));
  const bool has_mean = !model.zero_regression;
  const ResponseMoments response(model, model.truth[query], model.design.components[0],
                                 head.direction / law.sd);
  ArrayXd mean = ArrayXd::Zero(z.size()), square = mean;
  for (Index i = 0; i < z.size(); ++i) {
    const FunctionMoments moments = response(VectorXd::Constant(1, z(i)));
    mean(i) = moments.mean;
    square(i) = moments.mean_square;
  }

  SequenceMoments moments;
  moments.weights = VectorXd::Zero(n);
  moments.coarsened = u.coarsened;
  const VectorXd unit = VectorXd::Unit(rank, 0);
  MatrixXd before(rank, n);  // a state of the points before each, after a step
  for (Index j = 0; j < sigma.points.size(); ++j) {
    const ArrayXd first = table.first.col(j).array();
    const ArrayXd scaled = (sigma.points(j) - head.minus_log_kernel(u.points)).min(700.0).exp();
    const MatrixXd none = chain.factor(1 - table.fall.col(j).array());
    const MatrixXd one = chain.factor(first);
    const MatrixXd twice = chain.factor(first * scaled * square);
    const MatrixXd with_mean = has_mean ? chain.factor(first * mean) : MatrixXd();
    VectorXd a0 = unit, a1 = VectorXd::Zero(rank), a2 = a1;
    for (Index i = 0; i < n; ++i) {
      before.col(i) = a0;
      VectorXd next2 = none * a2 + twice * a0;
      if (has_mean) {
        next2 += 2 * (with_mean * a1);
        a1 = chain.step(none * a1 + with_mean * a0);
      }
      a2 = chain.step(next2);
      a0 = chain.step(none * a0);
    }
    // The constant polynomial does not change in a step.
    moments.mean += sigma.weights(j) * a1(0);
    moments.square += sigma.weights(j) * a2(0);
    const MatrixXd weighted = one * before;
    for (Index i = 0; i < n; ++i) {
      moments.weights(i) += sigma.weights(j) * before.col(n - 1 - i).dot(weighted.col(i));
    }
  }
  moments.normalisation_error = moments.weights.sum() - 1;
  return moments;
}

}  // namespace headlab
