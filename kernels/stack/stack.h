// SPDX-License-Identifier: Apache-2.0
/// \file A stack of attention layers on a token set, in plain numbers.
///
/// Layer l = 1..L maps the tokens X [n][d], a row each, with Z = norm(X) (pre) or Z = X:
///
///     now_h   = Z M_h Z^T / t
///     score_h = now_h in layer 1, later a score_h + (1 - a) now_h
///     A_h     = softmax of the rows of score_h; masked keys get weight 0
///     X       = s X + b sum_h A_h Z V_h, or s X + b (mean_h A_h) Z V with averaged values
///     X       = norm(X) after that (post)
///     X       = X + f(norm(X)) (pre) or norm(X + f(X)) (post), f(x) = relu(x W_1 + b_1) W_2
///
/// with head h of H, M_h = W_Q W_K^T, V_h = W_V W_O, temperature t, skip s, branch b and memory a.
/// Tokens are never normed before layer 1.
#pragma once

#include <optional>
#include <variant>

#include <Eigen/Core>

#include "kernels/matrices.h"
#include "kernels/stack/arithmetic.h"
#include "kernels/stack/formulas.h"

namespace headlab {

/// gain x / sqrt(mean x_j^2 + epsilon) + bias of each token x; `layer` does it
/// to x - mean(x). A token of denominator 0 becomes the bias.
struct TokenNorm {
  NormKind kind = NormKind::none;
  NormPlace place = NormPlace::pre;
  double epsilon = 0;
  Eigen::RowVectorXd gain;  ///< [d], or empty: 1
  Eigen::RowVectorXd bias;  ///< [d], or empty: 0
};

/// Maps with independent normal entries: W_Q, W_K [d][k] of variance
/// query_key/d each, W_V [d][value_dim] of value/d, W_O [value_dim][d] of 1/(H
/// value_dim), or 1/value_dim with averaged or alternating values.
struct GaussianMaps {
  double query_key = 1;
  double value = 1;
  int k = 1;          ///< d_k
  int value_dim = 1;  ///< d_v
  /// Above 0: every entry of M_h and V_h becomes the nearest subset sum of this
  /// many products of two uniforms on (-1, 1), 20 at most.
  int samples = 0;
};

/// M_h and V_h themselves, the same in all layers.
struct ExplicitMaps {
  Matrices query_key;  ///< [H] of d x d; empty where the kernel reads no tokens
  Matrices value;      ///< [H] of d x d, or one with averaged values
};

/// f(x) = relu(x W_1 + b_1) W_2.
struct Mlp {
  Eigen::MatrixXd input;    ///< W_1 [d][width]
  Eigen::RowVectorXd bias;  ///< b_1 [width]
  Eigen::MatrixXd output;   ///< W_2 [width][d]
};

/// An MLP with independent normal entries: W_1 of variance 1/d, b_1 of bias^2,
/// W_2 of 2 scale^2/width.
struct GaussianMlp {
  int width = 1;
  double scale = 1;
  double bias = 0;
};

struct Stack {
  Eigen::MatrixXd tokens;  ///< X_0 [n][d] where given; empty: points of the plan's design

  int layers = 1;  ///< L
  int heads = 1;   ///< H

  AttentionKernel kernel = AttentionKernel::softmax;
  double temperature = 1;
  double logit_sd = 1;           ///< of independent logits
  double logit_correlation = 0;  ///< between heads at one (row, key), 0 to 1
  Matrices fixed;                ///< [H] of n x n, rows that sum to one

  std::variant<GaussianMaps, ExplicitMaps> maps;
  bool averaged = false;     ///< one value map behind the mean of the heads
  bool alternating = false;  ///< layer l uses head (l - 1) mod H alone

  double skip = 0;
  double branch = 1;
  TokenNorm norm;
  double memory = 0;
  bool causal = false;  ///< row i sees keys j <= i
  std::optional<std::variant<GaussianMlp, Mlp>> mlp;
  bool shared_weights = false;  ///< drawn once, for all layers
  bool spectra = false;         ///< metrics that need singular values or eigenvalues
};

/// Names the draws of a replicate, and says how they and the rest are computed.
struct StackDraws {
  std::uint64_t seed = 0;
  std::uint64_t replicate = 0;
  const StackArithmetic* arithmetic = &plain_arithmetic();
};

}  // namespace headlab
