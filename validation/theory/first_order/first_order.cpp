// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/first_order/first_order.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "validation/theory/first_order/tilted_design.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// One head at every query.
struct OneHead {
  std::vector<double> log_mass;  ///< [Q], log D_h
  std::vector<double> mean;      ///< [Q], r_h
  std::vector<double> second;    ///< [Q], nu_2
};

std::vector<OneHead> single_heads(const TheoryModel& model) {
  std::vector<OneHead> heads;
  for (std::size_t h = 0; h < model.projections.size(); ++h) {
    const TiltedDesign once(model, h, 1, h, 0, true);
    const TiltedDesign twice(model, h, 2, h, 0, false);
    OneHead head;
    for (const VectorXd& x : model.queries) {
      const TiltedMoments moments = once.at(x);
      head.log_mass.push_back(moments.log_mass);
      head.mean.push_back(moments.regression.mean);
      head.second.push_back(std::exp(twice.at(x).log_mass - 2 * moments.log_mass));
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

}  // namespace

std::vector<HeadTheory> first_order(const TheoryModel& model) {
  const std::size_t count = model.projections.size();
  const auto size = static_cast<Index>(count);
  const VectorXd unknown = VectorXd::Constant(size, std::numeric_limits<double>::quiet_NaN());
  std::vector<HeadTheory> theory(
      model.queries.size(),
      {VectorXd::Zero(size), unknown, MatrixXd::Zero(size, size), MatrixXd::Zero(size, size)});
  const std::vector<OneHead> heads = single_heads(model);
  for (std::size_t h = 0; h < count; ++h) {
    for (std::size_t l = 0; l <= h; ++l) {
      const TiltedDesign pair(model, h, 1, l, 1, true);
      const TiltedDesign left(model, h, 2, l, 1, false);
      const TiltedDesign right(model, h, 1, l, 2, false);
      const auto row = static_cast<Index>(h);
      const auto column = static_cast<Index>(l);
      const auto n_h = static_cast<double>(model.tokens(h));
      const auto n_l = static_cast<double>(model.tokens(l));
      const double share = static_cast<double>(model.shared_tokens(h, l)) / (n_h * n_l);
      for (std::size_t q = 0; q < model.queries.size(); ++q) {
        const VectorXd& x = model.queries[q];
        const TiltedMoments both = pair.at(x);
        const double d_h = heads[h].log_mass[q];
        const double d_l = heads[l].log_mass[q];
        const double r_h = heads[h].mean[q];
        const double r_l = heads[l].mean[q];
        const double mu_11 = std::exp(both.log_mass - d_h - d_l);
        const FunctionMoments& m = both.regression;
        const double covariance = mu_11 * (m.product_about(r_h, r_l) + both.noise_variance) * share;
        const double rounding = mu_11 * m.product_rounding(r_h, r_l) * share;

        // M_ab/M_11; without any noise its limit for small constant noise.
        auto ratio = [&](const TiltedMoments& third, double log_d) {
          const double noise =
              both.noise_variance > 0 ? third.noise_variance / both.noise_variance : 1;
          return std::exp(third.log_mass - both.log_mass - log_d) * noise;
        };
        const double relative = (heads[h].second[q] - ratio(left.at(x), d_h)) / n_h +
                                (heads[l].second[q] - ratio(right.at(x), d_l)) / n_l +
                                (mu_11 - 1) * share;
        HeadTheory& at = theory[q];
        at.covariance(row, column) = at.covariance(column, row) = covariance;
        const double remainder = covariance * relative;
        at.covariance_remainder(row, column) = at.covariance_remainder(column, row) =
            remainder + std::copysign(rounding, remainder);
        if (h == l) at.bias(row) = r_h - model.truth[q] - mu_11 * (m.mean - r_h) / n_h;
      }
    }
  }
  return theory;
}

}  // namespace headlab
