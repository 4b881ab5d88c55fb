// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Core>

#include "kernels/decompositions.h"

namespace headlab {

double softmax_correlation(const Eigen::VectorXd& a, const Eigen::VectorXd& b) {
  return std::exp(-(a - b).squaredNorm() / 2);
}

double mean_log_correlation(const Eigen::MatrixXd& m, const Eigen::MatrixXd& other,
                            double temperature) {
  return -((m - other) / temperature).squaredNorm() / 2;
}

double mean_correlation(const Eigen::MatrixXd& m, const Eigen::MatrixXd& other,
                        double temperature) {
  const Eigen::MatrixXd difference = (m - other) / temperature;
  const Eigen::ArrayXd singular = singular_values(difference);
  return std::exp(-singular.square().log1p().sum() / 2);
}

double mean_covariance_ratio(const std::vector<double>& cosines, double temperature) {
  const double t2 = temperature * temperature;
  double product = 1;
  for (const double c : cosines) {
    // The factor in its two roots, each of which must be positive.
    const double low = 1 - (c * c + c) / t2;
    const double high = 1 - (c * c - c) / t2;
    if (!(low > 0 && high > 0)) return std::numeric_limits<double>::infinity();
    product /= std::sqrt(low * high);
  }
  return product;
}

double mean_inverse_sample_share(int k, double temperature) {
  const double base = 1 - 2 / (temperature * temperature);
  return base > 0 ? std::pow(base, -0.5 * k) : std::numeric_limits<double>::infinity();
}

double typical_sample_share(int k, double temperature) {
  return std::exp(-k / (temperature * temperature));
}

double condensation_threshold(std::uint64_t n) {
  return std::sqrt(2 * std::log(static_cast<double>(n)));
}

double condensed_squared_weights(std::uint64_t n, double sigma) {
  return std::max(1 - condensation_threshold(n) / sigma, 0.0);
}

}  // namespace headlab
