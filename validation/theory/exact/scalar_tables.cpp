// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/scalar_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/run/memory.h"

namespace headlab {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

ResponseMoments::ResponseMoments(const TheoryModel& model, double truth,
                                 const GaussianLaw& component, const MatrixXd& directions)
    : truth_(truth), noise_variance_(model.noise_sd * model.noise_sd) {
  const MatrixXd slope = component.covariance * directions;
  const GaussianLaw base = {component.mean, component.covariance - slope * slope.transpose()};
  if (!model.zero_regression) regression_ = model.regression->along(base, slope);
  if (!model.constant_noise) noise_ = model.noise_variance->along(base, slope);
}

FunctionMoments ResponseMoments::operator()(const VectorXd& z) const {
  FunctionMoments moments = {0, noise_ ? (*noise_)(z).mean : noise_variance_};
  if (regression_) {
    const FunctionMoments m = (*regression_)(z);
    moments.mean = m.mean - truth_;
    moments.mean_square += m.variance ? m.product_about(truth_, truth_)
                                      : m.mean_square - truth_ * (2 * m.mean - truth_);
  }
  return moments;
}

void require_table_memory(double numbers, int at_once) {
  // What every machine has; asking it takes longer than small tables.
  constexpr double always = 1 << 26;
  const double bytes = numbers * sizeof(double) * at_once;
  if (bytes <= always) return;
  require_memory(bytes < 1e18 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 60,
                 "for the tables of exact finite-n theory", "--threads",
                 "or take a larger bandwidth or n, --source first_order, or headlab run");
}

KernelTable kernel_table(const ArrayXd& level, const ArrayXd& sigma) {
  KernelTable table = {MatrixXd(level.size(), sigma.size()), MatrixXd(level.size(), sigma.size())};
  for (Index j = 0; j < sigma.size(); ++j) {
    for (Index i = 0; i < level.size(); ++i) {
      // Beyond 700, e^(-sK) is 0 and sK would overflow.
      const double scaled = std::exp(std::min(sigma(j) - level(i), 700.0));
      const double fall = -std::expm1(-scaled);
      table.fall(i, j) = fall;
      table.first(i, j) = scaled * (1 - fall);
    }
  }
  return table;
}

ArrayXXd power_of_phi(const ArrayXXd& fall, double power) {
  if (power <= 0) return ArrayXXd::Ones(fall.rows(), fall.cols());
  return ((-fall).max(-1.0).log1p() * power).exp();
}

}  // namespace headlab
