// SPDX-License-Identifier: Apache-2.0
/// \file Which heads of a layer are nearly the same, by the mean squared cosine of their principal
/// angles.
#pragma once

#include <cstddef>
#include <vector>

#include "validation/diversity/head_diversity.h"

namespace headlab {

/// Two heads of a layer, by their numbers in the model.
struct AlikePair {
  int layer = 0, first = 0, second = 0;
  double mean_squared_cosine =
      0;  ///< (1/k) sum_i cos^2(theta_i): 1 for one subspace, k/d at random
};

/// From this mean squared cosine on, two heads count as having one subspace.
inline constexpr double identical_from = 1 - 1e-9;

/// The `top` most alike pairs of all layers, most alike first. Heads that have one subspace are
/// represented by the first of them, so that no pair comes twice.
std::vector<AlikePair> alike_pairs(const HeadDiversity& diversity, std::size_t top);

/// Sets of two or more heads of a layer that have one subspace, by their numbers in the model.
std::vector<std::vector<int>> identical_heads(const LayerDiversity& layer);

/// How many heads of a layer could go: from the first head on, a head is kept unless its mean
/// squared cosine with a head kept before is at least `threshold`.
int redundant_heads(const LayerDiversity& layer, double threshold);

}  // namespace headlab
