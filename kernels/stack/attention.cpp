// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/attention.h"

#include <algorithm>
#include <cmath>

namespace headlab {

using Eigen::Index;
using Eigen::RowVectorXd;

void mix_scores(double a, const Scores& now, const StackArithmetic& arithmetic, Scores& old) {
  const Index n = old.rows.cols();
  old.rows.row(n) = a * old.rows.row(n) + (1 - a) * now.rows.row(n);
  // The exponent of all heads, also of one whose scores are 0.
  const stack::Sum at =
      stack::sum_at_larger(1, old.exponent + std::log(a), now.exponent + std::log1p(-a));
  arithmetic.sum(at.first, old.rows.topRows(n), at.second, now.rows.topRows(n),
                 old.rows.topRows(n));
  old.exponent = at.exponent;
}

void attend_by_scores(const Scores& scores, bool causal, const StackArithmetic& arithmetic,
                      Attention& out) {
  const Index n = scores.rows.cols();
  out.rows.resize(n + 1, n);
  if (!causal) {
    out.entropy = arithmetic.softmax(scores.rows, scores.exponent, out.rows);
    out.exponent = std::min(scores.exponent, 0.0);
    return;
  }
  RowMatrix weights = RowMatrix::Zero(n, n);
  for (Index i = 0; i < n; ++i) {
    const RowVectorXd logits =
        scores.rows.row(n).head(i + 1) + std::exp(scores.exponent) * scores.rows.row(i).head(i + 1);
    weights.row(i).head(i + 1) = (logits.array() - logits.maxCoeff()).exp();
    weights.row(i) /= weights.row(i).sum();
  }
  attend_as_given(weights, out);
}

void attend_as_given(const RowsView& weights, Attention& out) {
  const Index n = weights.cols();
  out.rows.resize(n + 1, n);
  out.rows.topRows(n) = weights.rowwise() - weights.row(0);
  const RowVectorXd shift = out.rows.topRows(n).colwise().mean();
  out.rows.topRows(n).rowwise() -= shift;
  out.rows.row(n) = weights.row(0) + shift;
  out.exponent = 0;
  out.entropy = -weights.unaryExpr([](double w) { return w > 0 ? w * std::log(w) : 0.0; }).sum() /
                static_cast<double>(n);
}

void attend_equally(Index n, bool causal, Attention& out) {
  RowMatrix weights = RowMatrix::Constant(n, n, 1.0 / static_cast<double>(n));
  for (Index i = 0; causal && i < n; ++i) {
    weights.row(i).setZero();
    weights.row(i).head(i + 1).setConstant(1.0 / static_cast<double>(i + 1));
  }
  attend_as_given(weights, out);
}

void average_heads(std::span<const Attention> heads, const StackArithmetic& arithmetic,
                   Attention& out) {
  out.exponent = heads[0].exponent;
  out.rows.resize(heads[0].rows.rows(), heads[0].rows.cols());
  const double share = 1 / static_cast<double>(heads.size());
  arithmetic.sum(share, heads[0].rows, 0, heads[0].rows, out.rows);
  for (const Attention& head : heads.subspan(1)) {
    arithmetic.sum(1, out.rows, share, head.rows, out.rows);
  }
}

}  // namespace headlab
