// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/token_model.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "engine/files/error.h"
#include "engine/scenario/condition.h"
#include "kernels/decompositions.h"
#include "validation/theory/mechanisms/merge.h"

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
  if (std::holds_alternative<GaussianKernel>(model.kernel)) {
    for (Eigen::MatrixXd& w : model.projections) w = orthogonal_columns(w);
  }
  if (const auto* ar1 = std::get_if<Ar1Sequence>(&condition.sequence)) {
    model.correlation = ar1->correlation;
  } else if (!std::holds_alternative<IndependentSequence>(condition.sequence)) {
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

}  // namespace headlab
