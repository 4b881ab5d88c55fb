// SPDX-License-Identifier: Apache-2.0
/// \file Which heads of a layer are nearly the same, by the mean squared cosine of their principal
/// angles.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "validation/diversity/head_diversity.h"

namespace headlab {

/// Two heads of a layer, by their numbers in the model.
struct AlikePair {
  int layer = 0, first = 0, second = 0;
  double mean_squared_cosine =
      0;  ///< (1/k) sum_i cos^2(theta_i): 1 for one subspace, k/d at random

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("layer", layer, "number of the layer");
    visit("heads", std::vector<int>{first, second}, "numbers of the two heads in the model");
    visit("mean_squared_cosine", mean_squared_cosine, "(1/k) sum_i cos^2(theta_i)");
  }
};

/// Heads of a layer that have one subspace, by their numbers in the model.
struct IdenticalHeads {
  int layer = 0;
  std::vector<int> heads;
  bool share_keys = false;  ///< by construction: they are of one key-value group

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("layer", layer, "number of the layer");
    visit("heads", heads, "numbers of the heads in the model");
    visit("share_keys", share_keys, "true: by construction, heads of one key-value group");
  }
};

/// How alike the heads of all layers are.
struct AlikeHeads {
  std::vector<AlikePair> pairs;           ///< most alike first
  std::vector<IdenticalHeads> identical;  ///< two or more heads with one subspace

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("pairs", pairs, "most alike pairs of heads", {.item = "pair"});
    visit("identical", identical, "heads that have one subspace", {.item = "set"});
  }
};

/// From this mean squared cosine on, two heads count as having one subspace.
inline constexpr double identical_from = 1 - 1e-9;

/// The `top` most alike pairs of all layers, most alike first. Heads that have one subspace are
/// represented by the first of them, so that no pair comes twice.
std::vector<AlikePair> alike_pairs(const HeadDiversity& diversity, std::size_t top);

/// Sets of two or more heads of a layer that have one subspace, by their numbers in the model.
std::vector<std::vector<int>> identical_heads(const LayerDiversity& layer);

/// The `top` most alike pairs, and sets of identical heads unless that is 0.
AlikeHeads alike_heads(const HeadDiversity& diversity, std::size_t top);

/// The summary of `headlab hdi --json`.
std::string head_diversity_json(const HeadDiversity& diversity, const AlikeHeads& alike,
                                const std::string& file, const Provenance& program);

}  // namespace headlab
