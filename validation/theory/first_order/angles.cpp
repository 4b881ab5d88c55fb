// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/first_order/angles.h"

#include <cmath>

#include <Eigen/Core>

#include "kernels/decompositions.h"
#include "validation/theory/exact/scalar_finite_n.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// log Z((P_h + P_l)/b^2), by the k-dimensional blocks of [W_h W_l].
double log_mass(const MatrixXd& first, const MatrixXd& second, const VectorXd& query,
                double bandwidth) {
  const MatrixXd sum =
      (first * first.transpose() + second * second.transpose()) / (bandwidth * bandwidth);
  const MatrixXd one = MatrixXd::Identity(sum.rows(), sum.cols());
  const Cholesky root(one + sum);
  return -0.5 * (root.log_determinant() + query.dot(root.solve(VectorXd(sum * query))));
}

ScalarHead plane_head(double cosine, double centre, double bandwidth) {
  ScalarHead head;
  head.direction = Eigen::Vector2d(cosine, std::sqrt((1 - cosine) * (1 + cosine)));
  head.centre = centre;
  head.rate = 1 / bandwidth;
  head.weights = {1.0};
  head.laws = {{0, 1}};
  return head;
}

}  // namespace

double overlap_correlation(const MatrixXd& first, const MatrixXd& second, const VectorXd& query,
                           double bandwidth) {
  return std::exp(log_mass(first, second, query, bandwidth) -
                  0.5 * (log_mass(first, first, query, bandwidth) +
                         log_mass(second, second, query, bandwidth)));
}

double noise_covariance_ratio(double cosine, double first, double second, double bandwidth,
                              std::uint64_t n) {
  TheoryModel model;
  model.n = n;
  model.design = {{1.0}, {{VectorXd::Zero(2), MatrixXd::Identity(2, 2)}}};
  model.zero_regression = true;
  model.noise_sd = 1;
  const PairMoments moments =
      scalar_pair_moments(model, PairTokens(model, 0, 1), 0, plane_head(1, first, bandwidth),
                          plane_head(cosine, second, bandwidth), Resolution{22, 25000});
  require_normalisation(moments.normalisation_error, "a pair of heads");
  return static_cast<double>(n) * moments.product;
}

Averaged query_averaged_covariance_ratio(double cosine, double bandwidth, std::uint64_t n) {
  // x = (z1, z2), projections z1 and cosine z1 + sine z2. The ratio is even in x.
  constexpr int reach = 10;
  constexpr double step = 0.5;
  const double sine = std::sqrt((1 - cosine) * (1 + cosine));
  double fine[2] = {};    // sums of weight x ratio, and of weights
  double coarse[2] = {};  // over every other point
  for (int i = 0; i <= reach; ++i) {
    for (int j = -reach; j <= reach; ++j) {
      const double z1 = i * step;
      const double z2 = j * step;
      const double square = z1 * z1 + z2 * z2;
      if (square > reach * step * reach * step) continue;
      const double weight = (i == 0 ? 1 : 2) * std::exp(-square / 2);
      const double ratio =
          noise_covariance_ratio(cosine, z1, cosine * z1 + sine * z2, bandwidth, n);
      fine[0] += weight * ratio;
      fine[1] += weight;
      if (i % 2 == 0 && j % 2 == 0) {
        coarse[0] += weight * ratio;
        coarse[1] += weight;
      }
    }
  }
  const double value = fine[0] / fine[1];
  return {value, value - coarse[0] / coarse[1]};
}

}  // namespace headlab
