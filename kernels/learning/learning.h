// SPDX-License-Identifier: Apache-2.0
/// \file Heads that are learned by gradient descent: what is learned, and how.
#pragma once

#include <cstdint>
#include <vector>

namespace headlab {

/// The numbers of an ensemble that can be learned.
struct HeadParameters {
  int heads = 1;  ///< H
  int d = 1;      ///< dimension of the design
  int k = 1;      ///< per-head dimension d_k

  std::vector<double> keys;     ///< [H][d][k], W_h; for separate matrices W_K
  std::vector<double> queries;  ///< [H][d][k], W_Q; empty where W_h projects the queries too
  std::vector<double> weights;  ///< [H], a_h
};

/// What the matrices of a head may be.
enum class HeadForm {
  orthonormal,  ///< W_h with orthonormal columns
  free,         ///< any W_h
  query_key     ///< any W_Q and W_K (softmax)
};

/// A fit: from where, how far, in which steps. See fit_heads().
struct Learning {
  HeadParameters start;
  HeadForm form = HeadForm::orthonormal;
  bool learns_weights = false;  ///< the a_h too
  std::uint64_t steps = 200;    ///< at most
  int batch = 32;               ///< training points that a step looks at
  double learning_rate = 0.05;  ///< length of the first steps
  double diversity = 0;         ///< lambda in the penalty lambda (1 - chordal index)
  double held_out = 0.2;        ///< share of the points that tells when to stop; 0: none
  int patience = 5;             ///< checks without progress after which a fit stops
  std::uint64_t seed = 0;       ///< of the batches
};

}  // namespace headlab
