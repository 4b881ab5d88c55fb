// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/scalar_finite_n.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// E[m - m(x) | z] and E[(m - m(x))^2 + s2 | z] in one component of the design, z the standardised,
/// uncorrelated scalars of the point.
class ResponseMoments {
 public:
  /// \param directions [d][columns], directions^T S directions = I; a column of 0 has no effect
  ResponseMoments(const TheoryModel& model, double truth, const GaussianLaw& component,
                  const MatrixXd& directions)
      : truth_(truth), noise_variance_(model.noise_sd * model.noise_sd) {
    const MatrixXd slope = component.covariance * directions;
    const GaussianLaw base = {component.mean, component.covariance - slope * slope.transpose()};
    if (!model.zero_regression) regression_ = model.regression->along(base, slope);
    if (!model.constant_noise) noise_ = model.noise_variance->along(base, slope);
  }

  bool has_mean() const { return regression_ != nullptr; }
  /// E[(m - m(x))^2 + s2 | z] is the same for every z.
  bool constant() const { return !regression_ && !noise_; }
  double constant_square() const { return noise_variance_; }

  FunctionMoments operator()(const VectorXd& z) const {
    FunctionMoments moments = {0, noise_ ? (*noise_)(z).mean : noise_variance_};
    if (regression_) {
      const FunctionMoments m = (*regression_)(z);
      moments.mean = m.mean - truth_;
      moments.mean_square += m.mean_square - truth_ * (2 * m.mean - truth_);
    }
    return moments;
  }

 private:
  double truth_;
  double noise_variance_;
  std::unique_ptr<ConditionalMoments> regression_;
  std::unique_ptr<ConditionalMoments> noise_;
};

/// What the integrals need of s K = exp(sigma - L) at points and sigmas [points][sigmas].
struct KernelTable {
  MatrixXd fall;   ///< 1 - e^(-sK)
  MatrixXd first;  ///< sK e^(-sK)
};

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

/// (1 - fall)^power; 1 at power 0, where fall may be 1.
template <class Array>
auto power_of_phi(const Array& fall, double power) {
  return (power > 0 ? (-fall).max(-1).log1p() * power : ArrayXXd::Zero(fall.rows(), fall.cols()))
      .exp()
      .eval();
}

/// Law of V given U in one component of the design: N(offset + slope u, sd^2).
struct Conditional {
  double offset = 0;
  double slope = 0;
  double sd = 0;
  VectorXd innovation;  ///< [d], V - E[V|U] = innovation.(X - mean), over sd; 0 where sd is 0
};

Conditional conditional(const ScalarHead& first, const ScalarHead& second,
                        const GaussianLaw& component, const ScalarLaw& u, const ScalarLaw& v) {
  Conditional law;
  law.innovation = second.direction;
  if (u.sd > 0) {
    law.slope = second.direction.dot(component.covariance * first.direction) / (u.sd * u.sd);
    law.innovation -= law.slope * first.direction;
  }
  law.offset = v.mean - law.slope * u.mean;
  law.sd = std::sqrt(std::max(law.innovation.dot(component.covariance * law.innovation), 0.0));
  // Below rounding there is no spread.
  if (law.sd > 1e-9 * v.sd) {
    law.innovation /= law.sd;
  } else {
    law.sd = 0;
    law.innovation.setZero();
  }
  return law;
}

/// Expectations over V given each u, [u][tau], by the second head's table: what the sums over u
/// then need.
struct GivenFirst {
  MatrixXd fall;         ///< E[1 - e^(-tK)]
  MatrixXd first;        ///< E[tK e^(-tK)]
  MatrixXd mean_rest;    ///< E[m e^(-tK)]
  MatrixXd mean_first;   ///< E[m tK e^(-tK)]
  MatrixXd square_first; ///< E[(m^2 + s2) tK e^(-tK)]
};

/// Sums of a pair over the design, [sigma][tau].
struct PairSums {
  VectorXd fall_u, first_u;  ///< E[1 - e^(-sK_h)], E[sK_h e^(-sK_h)]
  VectorXd fall_v, first_v;  ///< of the second head
  MatrixXd fall_fall, first_fall, fall_first, first_first;
  MatrixXd mean_first_rest;   ///< E[m sK_h e^(-sK_h-tK_l)]
  MatrixXd mean_rest_first;   ///< E[m tK_l e^(-sK_h-tK_l)]
  MatrixXd square;            ///< E[(m^2+s2) sK_h tK_l e^(-sK_h-tK_l)]

  PairSums(Index s, Index t)
      : fall_u(VectorXd::Zero(s)), first_u(VectorXd::Zero(s)), fall_v(VectorXd::Zero(t)),
        first_v(VectorXd::Zero(t)), fall_fall(MatrixXd::Zero(s, t)),
        first_fall(MatrixXd::Zero(s, t)), fall_first(MatrixXd::Zero(s, t)),
        first_first(MatrixXd::Zero(s, t)), mean_first_rest(MatrixXd::Zero(s, t)),
        mean_rest_first(MatrixXd::Zero(s, t)), square(MatrixXd::Zero(s, t)) {}
};

}  // namespace
}  // namespace headlab
