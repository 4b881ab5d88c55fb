// SPDX-License-Identifier: Apache-2.0
// Two heads: the sums over the design are matrix products, [sigma][u] [u][v] [v][tau].
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "validation/theory/exact/pair_sums.h"
#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/exact/scalar_tables.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Of a matrix over the design, [u][v]: 128 MB.
constexpr double max_entries = 1.6e7;

/// Law of V given U in one component of the design: N(offset + slope u, sd^2).
struct Conditional {
  double offset = 0;
  double slope = 0;
  double sd = 0;
  MatrixXd directions;  ///< [d][2], of the standardised U and V - E[V|U]; 0 without spread

  ScalarLaw given(double u) const { return {offset + slope * u, sd}; }
};

Conditional conditional(const ScalarHead& first, const ScalarHead& second,
                        const GaussianLaw& component, const ScalarLaw& u, const ScalarLaw& v) {
  Conditional law;
  law.directions = MatrixXd::Zero(first.direction.size(), 2);
  VectorXd innovation = second.direction;
  if (u.sd > 0) {
    law.directions.col(0) = first.direction / u.sd;
    law.slope = second.direction.dot(component.covariance * first.direction) / (u.sd * u.sd);
    innovation -= law.slope * first.direction;
  }
  law.offset = v.mean - law.slope * u.mean;
  law.sd = std::sqrt(std::max(innovation.dot(component.covariance * innovation), 0.0));
  // Below rounding there is no spread.
  if (law.sd <= 1e-10 * v.sd) law.sd = 0;
  if (law.sd > 0) law.directions.col(1) = innovation / law.sd;
  return law;
}

/// The least spread over which a pair's integrand is averaged, given the other head.
double min_conditional_sd(const TheoryModel& model, const ScalarHead& given,
                          const ScalarHead& head) {
  double least = head.laws[0].sd;
  for (std::size_t c = 0; c < head.laws.size(); ++c) {
    least = std::min(
        least,
        conditional(given, head, model.design.components[c], given.laws[c], head.laws[c]).sd);
  }
  return least;
}

double standardised(double value, const ScalarLaw& law) {
  return law.sd > 0 ? (value - law.mean) / law.sd : 0.0;
}

}  // namespace

PairMoments scalar_pair_moments(const TheoryModel& model, const PairTokens& tokens, double truth,
                                const ScalarHead& first, const ScalarHead& second,
                                const Resolution& resolution) {
  const auto sigma_tokens = static_cast<std::uint64_t>(tokens.both + tokens.first);
  const auto tau_tokens = static_cast<std::uint64_t>(tokens.both + tokens.second);
  const SigmaRange sigma_reach = sigma_range(first, sigma_tokens, resolution);
  const SigmaRange tau_reach = sigma_range(second, tau_tokens, resolution);
  const Nodes sigma = sigma_nodes(first, sigma_reach, sigma_tokens,
                                  min_conditional_sd(model, second, first), resolution);
  const Nodes tau = sigma_nodes(second, tau_reach, tau_tokens,
                                min_conditional_sd(model, first, second), resolution);
  require_table_memory(
      14 * static_cast<double>(sigma.points.size()) * static_cast<double>(tau.points.size()),
      resolution.at_once);
  LevelPairSums sums(sigma.points.size(), tau.points.size());
  bool coarsened = false;
  for (std::size_t c = 0; c < first.laws.size(); ++c) {
    const GaussianLaw& component = model.design.components[c];
    const ScalarLaw& u_law = first.laws[c];
    const ScalarLaw& v_law = second.laws[c];
    const Conditional law = conditional(first, second, component, u_law, v_law);
    const ResponseMoments response(model, truth, component, law.directions);

    // One grid of v for all u, fine enough for the conditional density; or, where that is narrow, a
    // grid of v for each u, and u sees both kernels.
    const double density_panel = law.sd * resolution.widest();
    bool narrow = law.sd < 0.02 * v_law.sd || v_law.sd == 0;
    Nodes v;
    if (!narrow) {
      v = scalar_nodes(v_law, {{second, tau_reach}}, density_panel, resolution);
      narrow = v.points.size() > 10 * scalar_nodes(law.given(u_law.mean), {{second, tau_reach}},
                                                   density_panel, resolution)
                                          .points.size();
    }
    std::vector<Sight> sights = {{first, sigma_reach}};
    if (narrow) sights.push_back({second, tau_reach, law.offset, law.slope});
    const double u_panel = narrow ? u_law.sd * resolution.widest()
                                  : density_panel / std::max(std::abs(law.slope), 1e-300);
    Nodes u = scalar_nodes(u_law, sights, u_panel, resolution);
    // Beyond ten times what memory holds, little serves to show by how much weights fail to sum.
    const double entries =
        static_cast<double>(u.points.size()) * static_cast<double>(v.points.size());
    if (!narrow && entries > max_entries) {
      const double share =
          std::sqrt((entries > 10 * max_entries ? max_entries / 50 : max_entries) / entries);
      const auto fewer = [&](const Nodes& nodes) {
        return Resolution{resolution.digits,
                          static_cast<Index>(share * static_cast<double>(nodes.points.size()))};
      };
      u = scalar_nodes(u_law, sights, u_panel, fewer(u));
      v = scalar_nodes(v_law, {{second, tau_reach}}, density_panel, fewer(v));
    }
    coarsened = coarsened || u.coarsened || v.coarsened;
    const auto us = static_cast<double>(u.points.size()), vs = static_cast<double>(v.points.size());
    const auto sigmas = static_cast<double>(sigma.points.size());
    const auto taus = static_cast<double>(tau.points.size());
    // As many matrices as GivenFirst, LevelPairSums with what integrates them, and JointLaw hold.
    require_table_memory(
        us * (2 * sigmas + 5 * taus) + 14 * sigmas * taus + (narrow ? 0 : vs * (3 * us + 2 * taus)),
        resolution.at_once);
    const VectorXd probability = first.weights[c] * masses(u, u_law);
    const KernelTable table = kernel_table(first.minus_log_kernel(u.points), sigma.points);

    VectorXd z(2);
    if (!narrow) {
      JointLaw joint(u.points.size(), v.points.size(), response);
      for (Index i = 0; i < u.points.size(); ++i) {
        const ScalarLaw given = law.given(u.points(i));
        z(0) = standardised(u.points(i), u_law);
        for (Index j = 0; j < v.points.size(); ++j) {
          z(1) = standardised(v.points(j), given);
          const double density =
              std::exp(-z(1) * z(1) / 2) / (given.sd * std::sqrt(2 * std::numbers::pi));
          joint.set(i, j, probability(i) * v.weights(j) * density, z, response);
        }
      }
      const KernelTable second_table = kernel_table(second.minus_log_kernel(v.points), tau.points);
      sums.add(table, probability, joint.given_first(second_table, response));
      continue;
    }
    GivenFirst given_first;
    const auto make_room = [&](MatrixXd& part) { part.resize(u.points.size(), tau.points.size()); };
    make_room(given_first.fall);
    make_room(given_first.first);
    if (response.has_mean()) {
      given_first.mean.resize(u.points.size());
      make_room(given_first.mean_rest);
      make_room(given_first.mean_first);
    }
    if (!response.is_constant()) make_room(given_first.square_first);
    given_first.constant_square = response.constant_square();
    for (Index i = 0; i < u.points.size(); ++i) {
      const ScalarLaw given = law.given(u.points(i));
      const Nodes own = scalar_nodes(given, {{second, tau_reach}}, density_panel, resolution);
      const ArrayXd own_masses = masses(own, given);
      JointLaw joint(1, own.points.size(), response);
      z(0) = standardised(u.points(i), u_law);
      for (Index j = 0; j < own.points.size(); ++j) {
        z(1) = standardised(own.points(j), given);
        joint.set(0, j, probability(i) * own_masses(j), z, response);
      }
      const GivenFirst row = joint.given_first(
          kernel_table(second.minus_log_kernel(own.points), tau.points), response);
      given_first.fall.row(i) = row.fall;
      given_first.first.row(i) = row.first;
      if (response.has_mean()) {
        given_first.mean(i) = row.mean(0);
        given_first.mean_rest.row(i) = row.mean_rest;
        given_first.mean_first.row(i) = row.mean_first;
      }
      if (!response.is_constant()) given_first.square_first.row(i) = row.square_first;
    }
    sums.add(table, probability, given_first);
  }
  PairMoments moments = sums.integrate(tokens, sigma.weights, tau.weights);
  moments.coarsened = coarsened;
  return moments;
}

}  // namespace headlab
