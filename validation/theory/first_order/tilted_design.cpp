// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/first_order/tilted_design.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "kernels/decompositions.h"
#include "kernels/laws.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// A weight's effect on one component, before the functions are brought along.
struct Tilt {
  VectorXd origin;
  MatrixXd frame;
  double constant = 0;
  VectorXd linear;
  MatrixXd quadratic;
  GaussianLaw base;  ///< the tilted law at z = 0
  MatrixXd slope;    ///< of its mean in z
};

Tilt tilt(const GaussianKernel& kernel, const GaussianLaw& design, const MatrixXd& projections,
          const VectorXd& powers) {
  Tilt t;
  t.origin = design.mean;
  t.frame = projections * (powers.cwiseSqrt() / kernel.bandwidth).asDiagonal();
  const MatrixXd seen = design.covariance * t.frame;
  const Index size = t.frame.cols();
  const Cholesky g(MatrixXd::Identity(size, size) + t.frame.transpose() * seen);
  const MatrixXd inverse = g.solve(MatrixXd(MatrixXd::Identity(size, size)));
  t.constant = -g.log_determinant() / 2;
  t.linear = VectorXd::Zero(size);
  t.quadratic = inverse / -2;
  t.slope = seen * inverse;
  t.base = {design.mean, design.covariance - t.slope * seen.transpose()};
  return t;
}

Tilt tilt(const SoftmaxKernel& kernel, const GaussianLaw& design, const MatrixXd& projections,
          const MatrixXd& query_projections, const VectorXd& powers) {
  Tilt t;
  t.origin = VectorXd::Zero(design.mean.size());
  t.frame = query_projections;
  const MatrixXd f = projections * (powers / kernel.temperature).asDiagonal();
  t.linear = f.transpose() * design.mean;
  t.quadratic = f.transpose() * design.covariance * f / 2;
  t.slope = design.covariance * f;
  t.base = design;
  return t;
}

Tilt tilt(const KernelLaw& kernel, const GaussianLaw& design, const MatrixXd& projections,
          const MatrixXd& query_projections, const VectorXd& powers) {
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&kernel)) {
    return tilt(*softmax, design, projections, query_projections, powers);
  }
  return tilt(std::get<GaussianKernel>(kernel), design, projections, powers);
}

}  // namespace

namespace {

/// The variance of a mixture about its mean, where that of each component is known.
std::optional<double> variance_of(const std::vector<FunctionMoments>& parts,
                                  const std::vector<double>& shares, double mean) {
  if (parts.empty()) return std::nullopt;
  double variance = 0;
  for (std::size_t c = 0; c < parts.size(); ++c) {
    if (!parts[c].variance) return std::nullopt;
    const double away = parts[c].mean - mean;
    variance += shares[c] * (*parts[c].variance + away * away);
  }
  return variance;
}

}  // namespace

TiltedDesign::TiltedDesign(const TheoryModel& model, std::size_t head, int power, std::size_t other,
                           int other_power, bool with_regression)
    : model_(model) {
  const MatrixXd& own = model.projections[head];
  const Index k = own.cols();
  const bool two = other != head && other_power > 0;
  const Index k_other = two ? model.projections[other].cols() : 0;
  const auto joined = [&](const MatrixXd& of_head, const MatrixXd& of_other) {
    MatrixXd both(own.rows(), k + k_other);
    both.leftCols(k) = of_head;
    both.rightCols(k_other) = of_other.leftCols(k_other);
    return both;
  };
  const MatrixXd projections = joined(own, model.projections[other]);
  const MatrixXd query_projections =
      joined(model.query_projection(head), model.query_projection(other));
  VectorXd powers(k + k_other);
  powers.head(k).setConstant(two || other != head ? power : power + other_power);
  powers.tail(k_other).setConstant(other_power);
  for (std::size_t c = 0; c < model.design.components.size(); ++c) {
    Tilt t =
        tilt(*model.kernel, model.design.components[c], projections, query_projections, powers);
    Component component{.weight = model.design.weights[c],
                        .origin = std::move(t.origin),
                        .frame = std::move(t.frame),
                        .constant = t.constant,
                        .linear = std::move(t.linear),
                        .quadratic = std::move(t.quadratic),
                        .regression = nullptr,
                        .noise_variance = nullptr};
    if (with_regression && !model.zero_regression) {
      component.regression = model.regression->along(t.base, t.slope);
    }
    if (!model.constant_noise) {
      component.noise_variance = model.noise_variance->along(t.base, t.slope);
    }
    components_.push_back(std::move(component));
  }
}

TiltedMoments TiltedDesign::at(const VectorXd& x) const {
  std::vector<VectorXd> z;
  std::vector<double> log_masses;
  double largest = -std::numeric_limits<double>::infinity();
  for (const Component& c : components_) {
    z.push_back(c.frame.transpose() * (x - c.origin));
    log_masses.push_back(std::log(c.weight) + c.constant + c.linear.dot(z.back()) +
                         z.back().dot(c.quadratic * z.back()));
    largest = std::max(largest, log_masses.back());
  }
  double total = 0;
  for (const double log_mass : log_masses) total += std::exp(log_mass - largest);

  TiltedMoments moments;
  moments.log_mass = largest + std::log(total);
  if (model_.constant_noise) moments.noise_variance = model_.noise_sd * model_.noise_sd;
  std::vector<FunctionMoments> parts;
  std::vector<double> shares;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    const double share = std::exp(log_masses[c] - largest) / total;
    if (components_[c].regression) {
      const FunctionMoments& m = parts.emplace_back((*components_[c].regression)(z[c]));
      shares.push_back(share);
      moments.regression.mean += share * m.mean;
      moments.regression.mean_square += share * m.mean_square;
    }
    if (components_[c].noise_variance) {
      moments.noise_variance += share * (*components_[c].noise_variance)(z[c]).mean;
    }
  }
  moments.regression.variance = variance_of(parts, shares, moments.regression.mean);
  return moments;
}

}  // namespace headlab
