// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/learning/fit.h"
#include "kernels/learning/learning.h"
#include "kernels/parameter.h"

namespace headlab {

/// What a fit for a whole run found.
struct LearnedHeads {
  Subspaces subspaces;
  Fit fit;                     ///< with its history
  std::uint64_t points = 0;    ///< of the training set
  std::uint64_t held_out = 0;  ///< of these
  /// Squared error over the points held out with keys of another training set.
  std::optional<double> fresh_key_error = {};
  double seconds = 0;
};

/// Heads trained by gradient descent to predict each training point from the others, as attention
/// heads are; see kernels/learning/fit.h.
struct LearnedSubspaces {
  static constexpr const char* name = "learned";
  static constexpr const char* summary = "trained by gradient descent on a training set";

  std::string fit = "once";
  std::string start = "identical";
  double spread = 0.01;  ///< radians or so
  std::string matrices = "orthonormal";
  std::optional<std::uint64_t> points = {};
  std::uint64_t steps = 200;
  int batch = 32;
  double learning_rate = 0.05;
  double diversity = 0;
  double held_out = 0.2;
  int patience = 5;
  std::uint64_t seed = 0;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("fit", fit, "once (on a sample of its own) or per_replicate, default once");
    visit.optional("start", start, "identical, haar or orthogonal, default identical");
    visit.optional("spread", spread, within(1e-6, 1),
                   "by which identical heads differ, default 0.01");
    visit.optional("matrices", matrices, "orthonormal, free or query_key, default orthonormal");
    visit.optional("points", points, within(2, 4294967295.0), "of that sample, default n");
    visit.optional("steps", steps, within(0, 1e6), "at most, default 200");
    visit.optional("batch", batch, within(1, 4096), "points that a step looks at, default 32");
    visit.optional("learning_rate", learning_rate, within(1e-9, 10),
                   "length of a step, default 0.05");
    visit.optional("diversity", diversity, within(0, 1e6),
                   "weight of 1 - chordal index, default 0");
    visit.optional("held_out", held_out, within(0, 0.9), "share of the points, default 0.2");
    visit.optional("patience", patience, within(1, 1e6), "checks without progress, default 5");
    visit.optional("seed", seed, "of sample, start and batches, default 0");
  }

  bool once() const { return fit == "once"; }
  HeadMatrixKind form() const {
    return matrices == "free"        ? HeadMatrixKind::free
           : matrices == "query_key" ? HeadMatrixKind::query_key
                                     : HeadMatrixKind::orthonormal;
  }

  void check(const Sizes& sizes) const;

  /// Heads before the first step: H matrices d x k with orthonormal columns. Identical ones are one
  /// Haar frame W, each turned to the Q of W + spread Z with Z of independent normals: descent
  /// alone would never tell heads apart that are quite the same.
  Subspaces start_subspaces(const Sizes& sizes) const;

  /// Heads that every replicate starts from. Throws ParameterError where they are learned once.
  Subspaces generate(const Sizes& sizes) const;
};

}  // namespace headlab
