// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/token_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/error.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/decompositions.h"
#include "kernels/laws.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

[[noreturn]] void refuse(const Condition& condition, const std::string& stage,
                         const std::string& problem) {
  reject(condition, "heads.mechanism." + stage, problem + simulation_instead);
}

/// A matrix with W W^T as given, and so the same Gaussian kernel, whose columns are orthogonal and
/// longest first: a c times orthogonal transformation gives columns of length c, one of rank r
/// gives r columns (one of zeros at rank 0). Orthonormal columns come back as they are.
Eigen::MatrixXd orthogonal_columns(const Eigen::MatrixXd& w) {
  const Eigen::Index k = w.cols();
  const Eigen::MatrixXd gram = w.transpose() * w;
  if ((gram - Eigen::MatrixXd::Identity(k, k)).cwiseAbs().maxCoeff() < 1e-12) return w;
  const SymmetricEigen eigen = symmetric_eigen(gram);
  // Columns shorter than this share of the longest are rounding.
  constexpr double negligible = 1e-7;
  const double least = negligible * negligible * eigen.values(k - 1);
  const auto rank = static_cast<Eigen::Index>((eigen.values.array() > least).count());
  return w * eigen.vectors.rightCols(std::max<Eigen::Index>(rank, 1)).rowwise().reverse();
}

/// Whether what every head sees begins and ends with groups of `size` tokens.
bool sees_whole_groups(const Plan& plan, std::uint64_t size) {
  for (int h = 0; h < plan.heads; ++h) {
    const SeenTokens seen = plan.mechanism.seen_by(h, plan.n);
    if (seen.sinks % size + seen.begin % size + seen.end % size != 0) return false;
  }
  return true;
}

/// Whether the last token has as many points as the others or nobody sees it.
bool sees_whole_tokens(const Plan& plan) {
  const Merge& merge = plan.mechanism.merge;
  const std::uint64_t whole = plan.n / merge.stride;
  for (int h = 0; h < plan.heads; ++h) {
    const SeenTokens seen = plan.mechanism.seen_by(h, plan.n);
    if (seen.end > whole || seen.sinks > whole) return false;
  }
  return true;
}

}  // namespace

TheoryModel token_model(const Condition& condition, const Plan& plan) {
  TheoryModel model = point_model(condition, plan);
  const Mechanism& mechanism = plan.mechanism;
  if (std::holds_alternative<GaussianKernel>(*model.kernel)) {
    for (Eigen::MatrixXd& w : model.projections) w = orthogonal_columns(w);
  }
  if (const auto* ar1 = std::get_if<Ar1Sequence>(&*condition.sequence)) {
    model.correlation = ar1->correlation;
  } else if (!std::holds_alternative<IndependentSequence>(*condition.sequence)) {
    reject(condition, "data.sequence",
           std::string("closed forms are for independent points and law ar1") + simulation_instead);
  }

  std::uint64_t points = mechanism.merge.stride;
  double weight = mechanism.merge.weight(points);
  const auto merge = [&](const std::string& stage) {
    if (points == 1 && weight == 1) return;
    if (model.correlation != 0)
      refuse(condition, stage, "has closed forms with independent points alone");
    try {
      merge_points(model, points, weight);
    } catch (const InvalidInput& problem) {
      refuse(condition, stage, problem.what());
    }
  };
  model.seen = mechanism.seen;
  model.keep = mechanism.keep;
  if (!mechanism.merge.off() && !sees_whole_tokens(plan)) {
    refuse(condition, "merge",
           "has closed forms where no head sees an incomplete token: data.n " +
               std::to_string(plan.n) + " is not a multiple of the stride " +
               std::to_string(points));
  }
  const std::vector<double>& levels = mechanism.levels.weights;
  const auto finest = std::ranges::find_if(levels, [](double share) { return share != 0; });
  model.levels = {finest, levels.end()};
  if (model.levels.size() == 1) model.levels.clear();
  // Scales below the finest that is used: tokens of a block share a key and so a weight.
  const auto block = std::uint64_t{1} << (finest - levels.begin());
  if (const std::uint64_t largest = mechanism.levels.block(); !sees_whole_groups(plan, largest)) {
    refuse(condition, "levels",
           "has closed forms where what a head sees begins and ends with blocks of " +
               std::to_string(largest) + " tokens");
  }
  for (SeenTokens& seen : model.seen) {
    seen = {.sinks = seen.sinks / block, .begin = seen.begin / block, .end = seen.end / block};
  }
  for (std::uint64_t& top : model.keep.top) {
    if (model.keep.rule == Keep::Rule::top) top = (top + block - 1) / block;
  }
  points *= block;
  weight /= static_cast<double>(block);
  merge(block > 1 ? "levels" : "merge");
  return model;
}

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
  if (auto* gaussian = std::get_if<GaussianKernel>(&model.kernel.own()))
    gaussian->bandwidth /= unit;
  if (auto* softmax = std::get_if<SoftmaxKernel>(&model.kernel.own()))
    softmax->temperature /= unit * unit;
}

}  // namespace headlab
