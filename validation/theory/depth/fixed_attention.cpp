// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/fixed_attention.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "engine/files/error.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

void require_fixed(bool holds, const char* message) {
  if (!holds) throw InvalidInput(std::string("fixed attention: ") + message);
}

void require_valid(const TokenGram& tokens, const FixedAttentionStack& stack) {
  const Eigen::Index n = tokens.residual.rows();
  require_fixed(n >= 1 && tokens.residual.cols() == n && tokens.cross.size() == n,
                "the Gram matrix of the tokens must be square");
  require_fixed(std::isfinite(tokens.mean_squared) && tokens.mean_squared >= 0 &&
                    tokens.cross.allFinite() && tokens.residual.allFinite(),
                "tokens must be finite");
  require_fixed(!stack.attention.empty(), "there must be a head");
  for (const MatrixXd& a : stack.attention) {
    require_fixed(a.rows() == n && a.cols() == n, "matrices must be n x n");
    require_fixed(
        a.allFinite() && a.minCoeff() >= 0 && ((a.rowwise().sum().array() - 1).abs() <= 1e-9).all(),
        "rows must not be negative and must sum to one");
  }
  require_fixed(std::isfinite(stack.value) && stack.value >= 0,
                "value must be finite and not negative");
  require_fixed(std::isfinite(stack.skip) && std::isfinite(stack.branch),
                "skip and branch must be finite");
  require_fixed(stack.layers >= 0, "layers must not be negative");
}

MatrixXd mean_attention(const Matrices& attention) {
  MatrixXd sum = attention[0];
  for (std::size_t h = 1; h < attention.size(); ++h) sum += attention[h];
  return sum / static_cast<double>(attention.size());
}

/// A = 1 a^T + B with a the mean row: A X has mean m + R^T a and residual B R.
struct SplitAttention {
  VectorXd mean_row;
  MatrixXd rest;
};

SplitAttention split(const MatrixXd& a) {
  const VectorXd mean = a.colwise().mean();
  return {mean, a.rowwise() - mean.transpose()};
}

/// E|m|^2 = e^(2 mean_log) mean, c = e^(mean_log + residual_log) cross, K = e^(2 residual_log)
/// residual.
struct ScaledGram {
  double mean_log = 0, residual_log = 0;
  double mean = 0;
  VectorXd cross;
  MatrixXd residual;

  /// Makes the parts about one in size. A mean far below the residual stays small instead, so that
  /// the ratio of scales does not overflow.
  void rescale() {
    constexpr double largest_ratio = 300;
    const double size = residual.diagonal().maxCoeff();
    const double residual_step = size > 0 ? std::log(size) / 2 : 0;
    residual_log += residual_step;
    residual *= std::exp(-2 * residual_step);
    const double lowest = size > 0 ? residual_log - largest_ratio : mean_log;
    const double own = mean > 0 ? mean_log + std::log(mean) / 2 : lowest;
    const double mean_step = std::max(own, lowest) - mean_log;
    mean_log += mean_step;
    mean *= std::exp(-2 * mean_step);
    cross *= std::exp(-mean_step - residual_step);
  }

  ExpectedEnergies energies() const {
    const auto n = static_cast<int>(residual.rows());
    return {2 * residual_log + std::log(std::max(residual.trace(), 0.0)),
            2 * mean_log + std::log(std::max(mean, 0.0)), n};
  }
};

}  // namespace

TokenGram token_gram(const MatrixXd& tokens) {
  require_fixed(tokens.rows() >= 1, "there must be a token");
  const VectorXd mean = tokens.colwise().mean();
  const MatrixXd residual = tokens.rowwise() - mean.transpose();
  return {mean.squaredNorm(), residual * mean, residual * residual.transpose()};
}

TokenGram independent_token_gram(int n, double squared_mean, double variance) {
  require_fixed(n >= 1, "n must be at least 1");
  require_fixed(std::isfinite(squared_mean) && squared_mean >= 0,
                "squared_mean must be finite and not negative");
  require_fixed(std::isfinite(variance) && variance >= 0,
                "variance must be finite and not negative");
  const MatrixXd centre = MatrixXd::Identity(n, n) - MatrixXd::Constant(n, n, 1.0 / n);
  return {squared_mean + variance / n, VectorXd::Zero(n), variance * centre};
}

MatrixXd uniform_weights(int n, bool causal) {
  require_fixed(n >= 1, "n must be at least 1");
  if (!causal) return MatrixXd::Constant(n, n, 1.0 / n);
  MatrixXd a = MatrixXd::Zero(n, n);
  for (int i = 0; i < n; ++i) a.row(i).head(i + 1).setConstant(1.0 / (i + 1));
  return a;
}

std::vector<ExpectedEnergies> fixed_attention_energies(const TokenGram& tokens,
                                                       const FixedAttentionStack& stack) {
  require_valid(tokens, stack);
  std::vector<SplitAttention> heads;
  if (stack.averaged) {
    heads = {split(mean_attention(stack.attention))};
  } else {
    for (const MatrixXd& a : stack.attention) heads.push_back(split(a));
  }
  const double keep = stack.skip * stack.skip;
  const double mix = stack.branch * stack.branch * stack.value / static_cast<double>(heads.size());

  ScaledGram gram = {
      .mean = tokens.mean_squared, .cross = tokens.cross, .residual = tokens.residual};
  gram.rescale();
  std::vector<ExpectedEnergies> layers = {gram.energies()};
  for (int l = 1; l <= stack.layers; ++l) {
    const double ratio = std::exp(gram.residual_log - gram.mean_log);
    ScaledGram next = gram;
    next.mean *= keep;
    next.cross *= keep;
    next.residual *= keep;
    for (const SplitAttention& head : heads) {
      const VectorXd seen = gram.residual * head.mean_row;
      next.mean += mix * (gram.mean + 2 * ratio * head.mean_row.dot(gram.cross) +
                          ratio * ratio * head.mean_row.dot(seen));
      next.cross += mix * (head.rest * (gram.cross + ratio * seen));
      next.residual += mix * (head.rest * gram.residual * head.rest.transpose());
    }
    gram = next;
    gram.rescale();
    layers.push_back(gram.energies());
  }
  return layers;
}

}  // namespace headlab
