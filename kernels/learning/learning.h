// SPDX-License-Identifier: Apache-2.0
/// \file Parameters of heads that are learned by gradient descent, and of the descent.
#pragma once

#include <cstdint>
#include <vector>

namespace headlab {

/// Numbers of an ensemble that can be learned.
struct HeadParameters {
  int heads = 1;  ///< H
  int d = 1;      ///< dimension of the design
  int k = 1;      ///< per-head dimension d_k

  std::vector<double> keys;     ///< [H][d][k], W_h; for separate matrices W_K
  std::vector<double> queries;  ///< [H][d][k], W_Q; empty where W_h projects the queries too
  std::vector<double> weights;  ///< [H], a_h
};

/// Set of matrices that a head may have.
enum class HeadMatrixKind {
  orthonormal,  ///< W_h with orthonormal columns
  free,         ///< any W_h
  query_key     ///< any W_Q and W_K (softmax)
};

/// Start, length and steps of a fit, see fit_heads().
struct Learning {
  HeadParameters start;
  HeadMatrixKind form = HeadMatrixKind::orthonormal;
  bool learns_weights = false;  ///< the a_h too
  std::uint64_t steps = 200;    ///< maximum
  int batch = 32;               ///< training points of a step
  double learning_rate = 0.05;  ///< length of the first steps
  double diversity = 0;         ///< lambda in the penalty lambda (1 - chordal index)
  double held_out = 0.2;        ///< share of the points held out for early stopping
  int patience = 5;             ///< checks without progress that end a fit
  std::uint64_t seed = 0;       ///< of the batches
};

}  // namespace headlab
