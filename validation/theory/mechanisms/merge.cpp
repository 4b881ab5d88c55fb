// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/merge.h"

#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include "engine/files/error.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Moments of v sum_i m(X_i) over a group, from those of one point and of a pair.
class GroupMoments : public ConditionalMoments {
 public:
  GroupMoments(double points, double weight, std::unique_ptr<ConditionalMoments> own,
               std::unique_ptr<ConditionalMoments> pair)
      : points_(points), weight_(weight), own_(std::move(own)), pair_(std::move(pair)) {}

  FunctionMoments operator()(const VectorXd& z) const override {
    const FunctionMoments own = (*own_)(z);
    const FunctionMoments pair = (*pair_)(z);
    const auto of_sum = [&](double square, double product) {
      return weight_ * weight_ * points_ * (square + (points_ - 1) * product);
    };
    FunctionMoments moments = {weight_ * points_ * own.mean,
                               of_sum(own.mean_square, pair.mean_square)};
    if (own.variance && pair.variance) moments.variance = of_sum(*own.variance, *pair.variance);
    return moments;
  }

 private:
  double points_;
  double weight_;
  std::unique_ptr<ConditionalMoments> own_;
  std::unique_ptr<ConditionalMoments> pair_;
};

/// v sum_i s^2(X_i) v, of which the mean alone is wanted.
class GroupNoiseMoments : public ConditionalMoments {
 public:
  GroupNoiseMoments(double factor, std::unique_ptr<ConditionalMoments> own)
      : factor_(factor), own_(std::move(own)) {}

  FunctionMoments operator()(const VectorXd& z) const override {
    FunctionMoments moments;
    moments.mean = factor_ * (*own_)(z).mean;
    return moments;
  }

 private:
  double factor_;
  std::unique_ptr<ConditionalMoments> own_;
};

/// What groups of points and their tokens have in common. A token in its units is sqrt(points)
/// times the mean of its group, and a point of the group is that mean and a deviation.
struct Group {
  double points;
  double weight;
  MatrixXd covariance;  ///< S, of a point

  GaussianLaw point(const GaussianLaw& token) const {
    return {token.mean / std::sqrt(points),
            token.covariance / points + covariance * (1 - 1 / points)};
  }
  MatrixXd cross(const GaussianLaw& token) const {
    return (token.covariance - covariance) / points;
  }
};

class GroupSum : public IntegrableFunction {
 public:
  GroupSum(Group group, std::shared_ptr<const IntegrableFunction> of_point)
      : group_(std::move(group)), of_point_(std::move(of_point)) {}

  std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                            const MatrixXd& slope) const override {
    const MatrixXd of_mean = slope / std::sqrt(group_.points);
    const GaussianLaw point = group_.point(base);
    return std::make_unique<GroupMoments>(
        group_.points, group_.weight, of_point_->along(point, of_mean),
        of_point_->along_pair(point, group_.cross(base), of_mean));
  }

 private:
  Group group_;
  std::shared_ptr<const IntegrableFunction> of_point_;
};

class GroupNoise : public IntegrableFunction {
 public:
  GroupNoise(Group group, std::shared_ptr<const IntegrableFunction> of_point)
      : group_(std::move(group)), of_point_(std::move(of_point)) {}

  std::unique_ptr<ConditionalMoments> along(const GaussianLaw& base,
                                            const MatrixXd& slope) const override {
    return std::make_unique<GroupNoiseMoments>(
        group_.points * group_.weight * group_.weight,
        of_point_->along(group_.point(base), slope / std::sqrt(group_.points)));
  }

 private:
  Group group_;
  std::shared_ptr<const IntegrableFunction> of_point_;
};

}  // namespace

void merge_points(TheoryModel& model, std::uint64_t stride, double weight) {
  if (model.design.components.size() != 1) {
    throw InvalidInput("groups of points have a closed form on a normal design alone");
  }
  const auto points = static_cast<double>(stride);
  GaussianLaw& law = model.design.components[0];
  const Group group = {points, weight, law.covariance};
  if (!model.zero_regression) {
    if (!model.regression->along_pair(law, law.covariance, MatrixXd(law.mean.size(), 0))) {
      throw InvalidInput(
          "groups of points have a closed form with the regressions zero, linear, additive, "
          "single_index and sums of cosines");
    }
    model.regression = std::make_shared<GroupSum>(group, model.regression);
  }
  if (model.constant_noise) {
    model.noise_sd *= weight * std::sqrt(points);
    model.noise_variance = std::make_shared<PolynomialFunction>(model.noise_sd * model.noise_sd,
                                                                VectorXd::Zero(law.mean.size()));
  } else {
    model.noise_variance = std::make_shared<GroupNoise>(group, model.noise_variance);
  }
  model.n /= stride;
  law.mean *= std::sqrt(points);
  const double unit = weight * std::sqrt(points);
  for (VectorXd& query : model.queries) query /= unit;
  if (auto* gaussian = std::get_if<GaussianKernel>(&model.kernel)) gaussian->bandwidth /= unit;
  if (auto* softmax = std::get_if<SoftmaxKernel>(&model.kernel))
    softmax->temperature /= unit * unit;
}

}  // namespace headlab
