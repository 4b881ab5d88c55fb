// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <variant>
#include <vector>

#include "kernels/kernel_laws.h"
#include "validation/theory/exact/pair_sums.h"
#include "validation/theory/exact/scalar_tables.h"
#include "validation/theory/mechanisms/finite_n_tokens.h"
#include "validation/theory/mechanisms/level_measure.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::Vector2d;
using Eigen::VectorXd;

/// A head as a sum of two scalar heads along its columns, which are independent.
struct PlanarHead {
  MatrixXd directions;  ///< [d][2], orthonormal
  ScalarHead along[2];
  SigmaRange range;

  PlanarHead(const TheoryModel& model, std::size_t query, std::size_t h,
             const Resolution& resolution)
      : directions(model.projections[h].colwise().normalized()) {
    const GaussianLaw& law = model.design.components[0];
    const double b = std::get<GaussianKernel>(*model.kernel).bandwidth;
    for (Index j = 0; j < 2; ++j) {
      ScalarHead& scalar = along[j];
      scalar.direction = directions.col(j);
      scalar.centre = scalar.direction.dot(model.queries[query]);
      scalar.rate = model.projections[h].col(j).norm() / b;
      scalar.weights = {1.0};
      scalar.laws = {{scalar.direction.dot(law.mean),
                      std::sqrt(scalar.direction.dot(law.covariance * scalar.direction))}};
    }
    range = sigma_range(
        {log_mean(), 0, largest(resolution), [this](double level) { return survival(level); }},
        model.tokens(h), resolution);
  }

 private:
  double log_mean() const {
    double sum = 0;
    for (const ScalarHead& scalar : along) {
      const double spread = std::pow(scalar.rate * scalar.laws[0].sd, 2);
      const double distance = scalar.rate * (scalar.laws[0].mean - scalar.centre);
      sum -= 0.5 * (std::log1p(spread) + distance * distance / (1 + spread));
    }
    return sum;
  }
  double largest(const Resolution& resolution) const {
    double sum = 0;
    for (const ScalarHead& scalar : along) {
      const double reach =
          std::abs(scalar.laws[0].mean - scalar.centre) + resolution.reach() * scalar.laws[0].sd;
      sum += std::pow(scalar.rate * reach, 2) / 2;
    }
    return sum;
  }
  /// P(L > level), to a percent: it says where nodes may be coarse.
  double survival(double level) const {
    constexpr int steps = 200;
    constexpr double reach = 9;
    const ScalarLaw& law = along[0].laws[0];
    double sum = 0, total = 0;
    for (int i = 0; i < steps; ++i) {
      const double z = reach * (2 * (i + 0.5) / steps - 1);
      const double mass = std::exp(-z * z / 2);
      const double rest =
          level - along[0].minus_log_kernel(ArrayXd::Constant(1, law.mean + z * law.sd))(0);
      total += mass;
      sum += mass * (rest > 0 ? along[1].survival(rest) : 1);
    }
    return sum / total;
  }
};

/// Nodes of one direction that resolve these heads.
struct LineNodes {
  ArrayXd points;
  ArrayXd mass;

  LineNodes(const ScalarLaw& law, const std::vector<Sight>& sights, const Resolution& resolution) {
    const Nodes nodes = scalar_nodes(law, sights, law.sd * resolution.widest(), resolution);
    points = nodes.points;
    mass = masses(nodes, law);
  }
};

/// Standardised directions of a plane, for the moments of the response.
MatrixXd standardised(const PlanarHead& head) {
  MatrixXd directions = head.directions;
  for (Index j = 0; j < 2; ++j) directions.col(j) /= head.along[j].laws[0].sd;
  return directions;
}

/// Calls visit(u, p, z) at every node of the plane.
template <class Visit>
void for_each_node(const PlanarHead& head, const LineNodes (&lines)[2], const Visit& visit) {
  VectorXd z(2);
  for (Index i = 0; i < lines[0].points.size(); ++i) {
    for (Index j = 0; j < lines[1].points.size(); ++j) {
      const Vector2d u(lines[0].points(i), lines[1].points(j));
      for (Index c = 0; c < 2; ++c) {
        const ScalarLaw& law = head.along[c].laws[0];
        z(c) = (u(c) - law.mean) / law.sd;
      }
      visit(u, lines[0].mass(i) * lines[1].mass(j), z);
    }
  }
}

double level_at(const PlanarHead& head, const Vector2d& u) {
  double level = 0;
  for (Index j = 0; j < 2; ++j) {
    const double away = head.along[j].rate * (u(j) - head.along[j].centre);
    level += away * away / 2;
  }
  return level;
}

}  // namespace

bool is_planar(const TheoryModel& model, std::size_t h) {
  const MatrixXd& w = model.projections[h];
  if (!std::holds_alternative<GaussianKernel>(*model.kernel) || w.cols() != 2 ||
      model.design.components.size() != 1) {
    return false;
  }
  const MatrixXd seen = w.transpose() * model.design.components[0].covariance * w;
  return std::abs(w.col(0).dot(w.col(1))) <= 1e-12 * w.squaredNorm() &&
         std::abs(seen(0, 1)) <= 1e-12 * seen.trace() && seen(0, 0) > 0 && seen(1, 1) > 0;
}

bool on_one_plane(const TheoryModel& model, std::size_t h, std::size_t l) {
  if (!is_planar(model, h) || !is_planar(model, l)) return false;
  const MatrixXd directions = model.projections[h].colwise().normalized();
  const MatrixXd& w = model.projections[l];
  return (directions * (directions.transpose() * w) - w).cwiseAbs().maxCoeff() < 1e-12;
}

HeadMoments planar_head_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                const Resolution& resolution) {
  const PlanarHead head(model, query, h, resolution);
  const ResponseMoments response(model, model.truth[query], model.design.components[0],
                                 standardised(head));
  const auto line = [&](const ScalarHead& along) {
    return LineNodes(along.laws[0], {{along, head.range}}, resolution);
  };
  const LineNodes lines[2] = {line(head.along[0]), line(head.along[1])};
  const LevelGrid grid(0, head.range.to + resolution.digits + 10, resolution.digits);
  LevelMeasure measure(grid);
  for_each_node(head, lines, [&](const Vector2d& u, double p, const VectorXd& z) {
    if (!(p > 1e-40)) return;
    const FunctionMoments moments = response(z);
    measure.add(level_at(head, u), p, moments.mean, moments.mean_square);
  });
  return head_moments(model.tokens(h), sigma_nodes(head.range, resolution), {measure.nodes()});
}

PairMoments planar_pair_moments(const TheoryModel& model, std::size_t query, std::size_t h,
                                std::size_t l, const Resolution& resolution) {
  const PlanarHead first(model, query, h, resolution);
  const PlanarHead second(model, query, l, resolution);
  const ResponseMoments response(model, model.truth[query], model.design.components[0],
                                 standardised(first));
  // The second head along the directions of the first, where it is not a sum of two.
  const double b = std::get<GaussianKernel>(*model.kernel).bandwidth;
  const Eigen::Matrix2d frame = model.projections[l].transpose() * first.directions / b;
  const Vector2d centre(first.along[0].centre, first.along[1].centre);
  const auto line = [&](Index j) {
    ScalarHead other = first.along[j];
    other.rate = frame.col(j).norm();
    return LineNodes(other.laws[0], {{first.along[j], first.range}, {other, second.range}},
                     resolution);
  };
  const LineNodes lines[2] = {line(0), line(1)};
  const LevelGrid u_grid(0, first.range.to + resolution.digits + 10, resolution.digits);
  const LevelGrid v_grid(0, second.range.to + resolution.digits + 10, resolution.digits);
  const Nodes sigma = sigma_nodes(first.range, resolution);
  const Nodes tau = sigma_nodes(second.range, resolution);
  const auto us = static_cast<double>(u_grid.levels().size());
  const auto vs = static_cast<double>(v_grid.levels().size());
  const auto sigmas = static_cast<double>(sigma.points.size());
  const auto taus = static_cast<double>(tau.points.size());
  require_table_memory(us * (2 * sigmas + 5 * taus) + 14 * sigmas * taus + vs * (3 * us + 2 * taus),
                       resolution.at_once);
  JointLaw joint(u_grid.levels().size(), v_grid.levels().size(), response);
  LevelGrid::Shares u_shares, v_shares;
  for_each_node(first, lines, [&](const Vector2d& u, double p, const VectorXd& z) {
    const double u_level = level_at(first, u);
    const double v_level = (frame * (u - centre)).squaredNorm() / 2;
    if (!(p > 1e-40)) return;
    // A head that does not reach the point has weight 0 there, as at the end of its grid.
    const Index i = u_grid.place(std::min(u_level, u_grid.levels().tail(1)(0)), u_shares);
    const Index j = v_grid.place(std::min(v_level, v_grid.levels().tail(1)(0)), v_shares);
    const Eigen::Matrix<double, panel_order, panel_order> shares =
        p * u_shares * v_shares.transpose();
    joint.probability.block<panel_order, panel_order>(i, j) += shares;
    if (response.is_constant()) return;
    const FunctionMoments moments = response(z);
    if (response.has_mean())
      joint.mean.block<panel_order, panel_order>(i, j) += moments.mean * shares;
    joint.square.block<panel_order, panel_order>(i, j) += moments.mean_square * shares;
  });
  LevelPairSums sums(sigma.points.size(), tau.points.size());
  sums.add(kernel_table(u_grid.levels(), sigma.points), joint.probability.rowwise().sum(),
           joint.given_first(kernel_table(v_grid.levels(), tau.points), response));
  return sums.integrate(PairTokens(model, h, l), sigma.weights, tau.weights);
}

}  // namespace headlab
