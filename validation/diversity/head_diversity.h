// SPDX-License-Identifier: Apache-2.0
/// \file Diversity of the heads of a model, compared with heads drawn at random: `headlab hdi`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/fields.h"
#include "engine/files/models/head_file.h"
#include "engine/files/provenance.h"

namespace headlab {

/// An index of a layer, and the same index of random heads of that shape.
struct ReferencedIndex {
  std::string name;
  std::optional<double> value;        ///< nullopt where it is undefined
  std::optional<double> upper_bound;  ///< the largest value, where one is known
  std::optional<double> random_mean;  ///< of random heads
  double random_mcse = 0;             ///< standard error of random_mean; 0: known exactly
  std::optional<double> random_sd;    ///< from one set of random heads to another
  std::optional<double> z;            ///< (value - random_mean)/random_sd

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("value", value, "index");
    visit("ceiling", upper_bound, "largest value");
    visit("random_mean", random_mean, "mean over random heads");
    visit("random_mcse", random_mean ? std::optional(random_mcse) : std::nullopt,
          "standard error of random_mean");
    visit("random_sd", random_sd, "standard deviation over random heads");
    visit("z", z, "(value - random_mean)/random_sd");
  }
};

/// What is known of one layer. Pairs (l, h) are in the order (0, 1), (0, 2), .., (H-2, H-1).
struct LayerDiversity {
  int number = 0;
  std::vector<int> heads;                    ///< [H] numbers in the model; empty: 0, .., H - 1
  std::vector<ReferencedIndex> indices;      ///< chordal, spectral, overlap, qk
  std::vector<std::vector<double>> cosines;  ///< [pairs][k] of the principal angles, descending
  std::vector<double> gaussian;              ///< [pairs] correlation at x = 0, see overlap()
  std::vector<double> query_key;             ///< [pairs] E rho of query_key.h, or empty
  std::vector<double> log_query_key;         ///< [pairs] E log rho, or empty
  std::vector<double> condition_numbers;     ///< [H] of w_k, or without it of the given matrices
};

/// One layer with the shape of its heads.
struct LayerRecord {
  const LayerDiversity& layer;
  int heads, k;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("layer", layer.number, "number of the layer");
    visit("heads", heads, "number of heads H");
    visit("head_numbers",
          layer.heads.empty() ? std::nullopt : std::optional<std::vector<int>>(layer.heads),
          "numbers of the heads in the model, where some have no subspace");
    visit("dim", k, "per-head dimension d_k");
    visit("indices", by_name(layer.indices), "diversity index", {.item = "index"});
    visit("condition_number", layer.condition_numbers,
          "largest over smallest singular value of the keys of a head");
    const std::vector<double> right(static_cast<std::size_t>(k), 1.0);
    visit("principal_cosines", of_pairs(layer.cosines, right), "cosines of the principal angles");
    visit("correlations", Correlations{*this}, "correlations of the heads");
  }

 private:
  struct Correlations {
    const LayerRecord& record;

    template <class Visitor>
    void fields(Visitor& visit) const {
      const LayerDiversity& layer = record.layer;
      visit("gaussian", record.of_pairs(layer.gaussian, 1.0), "of a Gaussian kernel at x = 0");
      visit("query_key", record.of_pairs(layer.query_key, 1.0), "mean over queries, softmax");
      visit("log_query_key", record.of_pairs(layer.log_query_key, 0.0), "mean of the logarithm");
    }
  };

  /// [H][H], symmetric, from the pairs (0, 1), (0, 2), .., with `own` on the diagonal; none where
  /// there are no pairs.
  template <class T>
  std::optional<std::vector<std::vector<T>>> of_pairs(const std::vector<T>& pairs,
                                                      const T& own) const {
    if (pairs.empty() && heads > 1) return std::nullopt;
    const auto size = static_cast<std::size_t>(heads);
    std::vector<std::vector<T>> rows(size, std::vector<T>(size, own));
    std::size_t pair = 0;
    for (std::size_t l = 0; l + 1 < size; ++l) {
      for (std::size_t h = l + 1; h < size; ++h, ++pair) rows[l][h] = rows[h][l] = pairs[pair];
    }
    return rows;
  }
};

/// All layers of a file.
struct HeadDiversity {
  int heads = 0, d = 0, k = 0;  ///< heads of the model; a layer may have fewer
  int groups = 0;               ///< G of heads that share keys; H where each has its own
  double temperature = 1;       ///< t of the softmax: the file's, else sqrt(k)
  double bandwidth = 1;  ///< sqrt(t): the Gaussian kernel's that has these weights (theory, 2)
  std::uint64_t seed = 0;
  int random_sets = 0;  ///< sets of H random subspaces drawn
  bool rotary = false;
  std::vector<LayerDiversity> layers;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("d", d, "dimension of the design");
    visit("kv_heads", groups, "groups of heads that share keys");
    visit("temperature", temperature, "temperature of the softmax");
    visit("bandwidth", bandwidth, "bandwidth of the Gaussian kernel that has these weights");
    visit("positions", rotary ? "rotary" : "absolute", "positions of the model");
    visit("random_sets", random_sets, "sets of random heads drawn");
    std::vector<LayerRecord> records;
    for (const LayerDiversity& layer : layers) {
      records.push_back({layer, static_cast<int>(layer.condition_numbers.size()), k});
    }
    visit("layers", records, "layers", {.item = "layer"});
  }
};

/// Computes the diversity of each layer.
///
/// Random heads have Haar-uniform subspaces of the same H, d, k and groups: the heads of a group
/// share one subspace, and those of different groups are independent. Upper bounds are for such
/// groups too. Mean and sd of `chordal` are exact (haar_null()); those of `spectral` and `overlap`
/// come from `random_sets` drawn sets, with `chordal` as control variate. For `qk`, which needs
/// w_q, w_k and positions that are not rotary, random heads keep the singular values of their W_Q
/// W_K^T while its left and right subspaces are independent and Haar-uniform; the right singular
/// vectors of the heads of a group are turned together. Sums over the pairs of heads of two groups
/// are uncorrelated, and so are single pairs within a group, so that the variance of `qk` is the
/// sum of theirs.
///
/// Layers that lack heads of the model are compared with random heads of their own number.
///
/// \param seed of the random heads; figures do not depend on `threads`
/// \param stop true: throw Stopped; asked for each layer and each set of random heads
/// Throws InvalidInput, beginning with `source`, where matrices have rank below k or heads of one
/// group differ in their subspaces.
HeadDiversity head_diversity(const HeadFile& file, const std::string& source, std::uint64_t seed,
                             int threads, const std::function<bool()>& stop = {});

}  // namespace headlab
