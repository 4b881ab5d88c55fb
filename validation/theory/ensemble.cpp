// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/ensemble.h"

#include <algorithm>
#include <limits>

#include <Eigen/Core>

#include "engine/run/pilot.h"
#include "kernels/decompositions.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The solution of m u = right on the coordinates where `kept` is 1; 0 where it is 0.
VectorXd solve_on(const MatrixXd& m, const VectorXd& right, const VectorXd& kept) {
  MatrixXd part = kept.asDiagonal() * m * kept.asDiagonal();
  part.diagonal() += VectorXd::Ones(kept.size()) - kept;
  return Cholesky(part).solve(VectorXd(kept.cwiseProduct(right)));
}

/// argmin u^T m u/2 - right.u over u >= 0, by the active set method of Lawson and Hanson (1974). m
/// has unit diagonal, right is positive and at most 1.
VectorXd nonnegative_solution(const MatrixXd& m, const VectorXd& right) {
  constexpr double rounding = 1e-13;
  const Index size = m.rows();
  VectorXd kept = VectorXd::Zero(size);
  VectorXd u = VectorXd::Zero(size);
  // Each round ends at another set of coordinates; the bound is for rounding that makes it cycle.
  for (Index round = 0; round < 10 * size; ++round) {
    const VectorXd gain = (right - m * u).cwiseProduct(VectorXd::Ones(size) - kept);
    Index best = 0;
    if (!(gain.maxCoeff(&best) > rounding)) break;
    kept(best) = 1;
    while (true) {
      const VectorXd target = solve_on(m, right, kept);
      // As far towards the target as every coordinate stays positive.
      double share = 1;
      for (Index h = 0; h < size; ++h) {
        if (kept(h) == 1 && target(h) <= 0) share = std::min(share, u(h) / (u(h) - target(h)));
      }
      if (!(share < 1)) {
        u = target;
        break;
      }
      u += share * (target - u);
      for (Index h = 0; h < size; ++h) {
        if (target(h) <= 0 && u(h) <= rounding) kept(h) = u(h) = 0;
      }
    }
  }
  return u;
}

}  // namespace

std::vector<double> nonnegative_weights(const MatrixXd& m) {
  const std::vector<double> free = optimal_weights(m);
  if (std::all_of(free.begin(), free.end(), [](double a) { return a >= 0; })) return free;
  // The minimum of a^T m a on the simplex lies on the ray of the minimum of a^T m a/2 - 1^T a; with
  // a_h = scale_h u_h every head has error 1.
  VectorXd scale = m.diagonal().cwiseSqrt().cwiseInverse();
  const MatrixXd scaled = scale.asDiagonal() * m * scale.asDiagonal();
  scale /= scale.maxCoeff();
  const VectorXd a = scale.cwiseProduct(nonnegative_solution(scaled, scale));
  const VectorXd best = a / a.sum();
  return {best.begin(), best.end()};
}

std::vector<double> unconstrained_weights(const MatrixXd& second_moments,
                                          const VectorXd& with_truth) {
  const Cholesky factor(second_moments);
  if (!factor.succeeded() ||
      !(factor.reciprocal_condition() > std::numeric_limits<double>::epsilon())) {
    throw ParameterError("", "some heads estimate the same, so no weights are best");
  }
  const VectorXd a = factor.solve(with_truth);
  return {a.begin(), a.end()};
}

double in_sample_optimism(double replicates, int heads) {
  return (replicates - heads) / (replicates - 1);
}

double fresh_sample_cost(double replicates, int heads) {
  const double left = replicates - heads - 1;
  return left > 0 ? 1 + (heads - 1) / left : std::numeric_limits<double>::infinity();
}

double ensemble_variance(double variance, double correlation, int heads) {
  return variance * (1.0 / heads + (1 - 1.0 / heads) * correlation);
}

double output_projection_error(const MatrixXd& projection, const VectorXd& mean,
                               const MatrixXd& covariance, const VectorXd& target) {
  return (projection * mean - target).squaredNorm() +
         (projection * covariance).cwiseProduct(projection).sum();
}

MatrixXd stacked_noise_covariance(const MatrixXd& weights_covariance,
                                  const MatrixXd& noise_covariance) {
  const Index v = noise_covariance.rows();
  MatrixXd stacked(weights_covariance.rows() * v, weights_covariance.cols() * v);
  for (Index h = 0; h < weights_covariance.rows(); ++h) {
    for (Index l = 0; l < weights_covariance.cols(); ++l) {
      stacked.block(h * v, l * v, v, v) = weights_covariance(h, l) * noise_covariance;
    }
  }
  return stacked;
}

}  // namespace headlab
