// SPDX-License-Identifier: Apache-2.0
/// \file How different the heads of a model are, beside heads drawn at random: `headlab hdi`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/head_file.h"
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
};

/// What is known of one layer. Pairs (l, h) are in the order (0, 1), (0, 2), .., (H-2, H-1).
struct LayerDiversity {
  int number = 0;
  std::vector<ReferencedIndex> indices;      ///< chordal, spectral, overlap, qk
  std::vector<std::vector<double>> cosines;  ///< [pairs][k] of the principal angles, descending
  std::vector<double> gaussian;              ///< [pairs] correlation at x = 0, see overlap()
  std::vector<double> query_key;             ///< [pairs] E rho of query_key.h, or empty
  std::vector<double> log_query_key;         ///< [pairs] E log rho, or empty
  std::vector<double> condition_numbers;     ///< [H] of w_k, or without it of the given matrices
};

/// All layers of a file.
struct HeadDiversity {
  int heads = 0, d = 0, k = 0;
  double temperature = 1;  ///< t of the softmax: the file's, else sqrt(k)
  double bandwidth = 1;    ///< sqrt(t): the Gaussian kernel's that has these weights (theory, 2)
  std::uint64_t seed = 0;
  int random_sets = 0;  ///< sets of H random subspaces drawn
  bool rotary = false;
  std::vector<LayerDiversity> layers;
};

/// Computes the diversity of each layer.
///
/// Random heads have independent Haar-uniform subspaces of the same H, d, k. Mean and sd of
/// `chordal` are exact (haar_null()); those of `spectral` and `overlap` come from `random_sets`
/// drawn sets, with `chordal` as control variate. For `qk`, which needs w_q, w_k and positions that
/// are not rotary, random heads keep the singular values of their W_Q W_K^T while its left and
/// right subspaces are independent and Haar-uniform. Indices over pairs of independent Haar heads
/// have uncorrelated terms, so that their variance is that of a pair over the number of pairs.
///
/// \param seed of the random heads; figures do not depend on `threads`
/// Throws InvalidInput, beginning with `source`, where matrices have rank below k.
HeadDiversity head_diversity(const HeadFile& file, const std::string& source, std::uint64_t seed,
                             int threads);

/// The summary of `headlab hdi --json`.
std::string head_diversity_json(const HeadDiversity& diversity, const std::string& file,
                                const Provenance& program);

}  // namespace headlab
