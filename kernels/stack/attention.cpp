// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

namespace {
constexpr double max_exponent = 700;  // of numbers below 1e304
}  // namespace

Scores token_scores(const CentredTokens& z, const MatrixXd& map, double temperature,
                    const StackArithmetic& arithmetic) {
  const MatrixXd right = arithmetic.product(map, z.residual.transpose()) / temperature;
  return {.common = z.scale() * (z.mean * right),
          .rows = {.matrix = arithmetic.product(z.residual, right), .exponent = 2 * z.exponent}};
}

Scores drawn_scores(MatrixXd logits) {
  const Index n = logits.cols();
  return {.common = RowVectorXd::Zero(n), .rows = {.matrix = std::move(logits), .exponent = 0}};
}

Scores mixed_scores(double a, const Scores& old, const Scores& now) {
  const std::array<ScaledMatrix, 2> terms = {
      ScaledMatrix{old.rows.matrix, old.rows.exponent + std::log(a)},
      ScaledMatrix{now.rows.matrix, now.rows.exponent + std::log1p(-a)}};
  return {.common = a * old.common + (1 - a) * now.common, .rows = scaled_sum(terms)};
}

Attention softmax_attention(const Scores& scores, bool causal, const StackArithmetic& arithmetic) {
  const Index n = scores.common.size();
  const double w = scores.rows.exponent;
  const MatrixXd& e = scores.rows.matrix;
  if (causal) {
    MatrixXd weights = MatrixXd::Zero(n, n);
    for (Index i = 0; i < n; ++i) {
      const RowVectorXd logits = scores.common.head(i + 1) + std::exp(w) * e.row(i).head(i + 1);
      weights.row(i).head(i + 1) = (logits.array() - logits.maxCoeff()).exp();
      weights.row(i) /= weights.row(i).sum();
    }
    return given_attention(std::move(weights));
  }
  RowVectorXd log_common = scores.common.array() - scores.common.maxCoeff();
  log_common.array() -= std::log(log_common.array().exp().sum());
  Attention out{.weights = MatrixXd(n, n),
                .common = log_common.array().exp(),
                .rest = {.matrix = MatrixXd(n, n), .exponent = std::min(w, 0.0)}};
  if (w < -600) {
    const VectorXd means = e * out.common.transpose();
    out.rest.matrix = (e.colwise() - means).array().rowwise() * out.common.array();
    out.weights.rowwise() = out.common;
    return out;
  }

  // Row by row: differences t to the logit of the largest weight, the pivot,
  // which is then not one of many that cancel.
  MatrixXd t = std::exp(w) * e;
  std::vector<Index> pivots(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    Index& pivot = pivots[static_cast<std::size_t>(i)];
    (log_common + t.row(i)).maxCoeff(&pivot);
    t.row(i).array() -= t(i, pivot);
  }
  // log sum_j a_j e^t_j, by sum_j a_j (e^t_j - 1) where that is small.
  MatrixXd& rest = out.rest.matrix;
  rest = t.cwiseMin(max_exponent);
  arithmetic.expm1(rest);
  VectorXd sums = VectorXd::Zero(n);
  for (Index j = 0; j < n; ++j) sums += out.common(j) * rest.col(j);
  for (Index i = 0; i < n; ++i) {
    double log_sum = std::log1p(sums(i));
    if (!(std::abs(sums(i)) < 0.5)) {
      const RowVectorXd exponents = log_common + t.row(i);
      const double largest = exponents(pivots[static_cast<std::size_t>(i)]);
      log_sum = largest + std::log((exponents.array() - largest).exp().sum());
    }
    t.row(i).array() -= log_sum;  // now log A_ij / a_j
  }
  out.weights = t.rowwise() + log_common;
  arithmetic.exp(out.weights);
  rest = t.cwiseMin(1.0);
  arithmetic.expm1(rest);
  const double to_rest = std::exp(-out.rest.exponent);
  for (Index j = 0; j < n; ++j) {
    const double common = out.common(j);
    for (Index i = 0; i < n; ++i) {
      const double difference = t(i, j) < 1 ? common * rest(i, j) : out.weights(i, j) - common;
      rest(i, j) = difference * to_rest;
    }
  }
  return out;
}

Attention given_attention(MatrixXd weights) {
  Attention out;
  out.common = weights.row(0);
  out.rest.matrix = weights.rowwise() - weights.row(0);
  const RowVectorXd shift = out.rest.matrix.colwise().mean();
  out.common += shift;
  out.rest.matrix.rowwise() -= shift;
  out.weights = std::move(weights);
  return out;
}

Attention uniform_attention(Index n, bool causal) {
  MatrixXd weights = MatrixXd::Constant(n, n, 1.0 / static_cast<double>(n));
  for (Index i = 0; causal && i < n; ++i) {
    weights.row(i).setZero();
    weights.row(i).head(i + 1).setConstant(1.0 / static_cast<double>(i + 1));
  }
  return given_attention(std::move(weights));
}

Attention mean_attention(std::span<const Attention> heads) {
  Attention mean = heads[0];
  for (const Attention& head : heads.subspan(1)) {
    mean.weights += head.weights;
    mean.common += head.common;
    mean.rest.matrix += head.rest.matrix;
  }
  const auto count = static_cast<double>(heads.size());
  mean.weights /= count;
  mean.common /= count;
  mean.rest.matrix /= count;
  return mean;
}

CentredTokens attend(double skip, const CentredTokens& x, double branch, const CentredTokens& z,
                     std::span<const Attention> heads, std::span<const MatrixXd> values,
                     const StackArithmetic& arithmetic) {
  RowVectorXd mean = skip * x.mean;
  double mean_sizes = x.mean_error * mean.norm();
  std::vector<ScaledMatrix> terms = {{skip * x.residual, x.exponent}};
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const Attention& head = heads[h];
    const RowVectorXd from_mean = branch * (z.mean * values[h]);
    const RowVectorXd from_residual = branch * z.scale() * ((head.common * z.residual) * values[h]);
    mean += from_mean + from_residual;
    mean_sizes += z.mean_error * from_mean.norm() + z.residual_error * from_residual.norm();
    terms.push_back(
        {branch * arithmetic.product(arithmetic.product(head.rest.matrix, z.residual), values[h]),
         z.exponent + head.rest.exponent});
  }
  const RowVectorXd before = mean;
  CentredTokens out = centred(std::move(mean), scaled_sum(terms));
  double sizes = 0;
  for (std::size_t i = 0; i < terms.size() && !out.collapsed(); ++i) {
    const double error = i == 0 ? x.residual_error : z.residual_error;
    sizes += error * terms[i].matrix.norm() * std::exp(terms[i].exponent - out.exponent);
  }
  // What the residual gives to the mean counts with the residual's error.
  mean_sizes += z.residual_error * (out.mean - before).norm();
  constexpr double step_error = 1e-13;
  out.mean_error = (mean_sizes == 0 ? 0 : mean_sizes / out.mean.norm()) + step_error;
  out.residual_error = (sizes == 0 ? 0 : sizes / out.residual.norm()) + step_error;
  return out;
}

}  // namespace headlab
