// SPDX-License-Identifier: Apache-2.0
/// \file What low-rank approximations of the heads of a model lose: `headlab compress`.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "engine/files/fields.h"
#include "engine/files/models/head_file.h"
#include "engine/files/provenance.h"
#include "engine/moments/jackknife.h"
#include "engine/scenario/mechanism/low_rank.h"

namespace headlab {

/// How heads are compressed and compared.
struct CompressionSetting {
  int rank = 1;         ///< R, below k
  bool centre = false;  ///< fitted to the covariance of the keys
  /// Inputs of the heads [rows][d], of which keys and queries are drawn with replacement; empty:
  /// N(0, I).
  Eigen::MatrixXd tokens;
  std::uint64_t keys = 128;        ///< n, that a query weighs
  std::uint64_t queries = 16;      ///< of each set of keys
  std::uint64_t replicates = 256;  ///< sets of keys
  std::uint64_t seed = 0;
};

/// What a head loses, or the heads of a layer on average. NaN where the method has no best
/// subspace. Primes are of the compressed head.
struct CompressionLoss {
  /// E (s - s')^2 / E s^2 of the scores s.
  double scores = std::numeric_limits<double>::quiet_NaN();
  Estimate weights;  ///< E sum_i |w_i - w'_i| / 2
  /// E |o - o'|^2 / E |o|^2, o = sum_i w_i u_i, u_i the key with its second moment made I: the mean
  /// over all linear functions of the keys as values.
  Estimate outputs;
  Estimate noise;  ///< E sum w'^2 / E sum w^2: the noise variance of the head over what it was

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("scores", scores, "squared error of the scores over their mean square");
    visit("weights", weights, "total variation of the weights, averaged over queries");
    visit("outputs", outputs, "squared error of outputs linear in the keys over their mean square");
    visit("noise", noise, "noise variance of the compressed head over that of the head");
  }
};

/// All heads of a layer by one method.
struct MethodLoss {
  std::string name;
  CompressionLoss mean;
  std::vector<CompressionLoss> heads;  ///< [H]

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("mean", mean, "average over heads");
    visit("heads", heads, "heads", {.item = "head"});
  }
};

struct LayerCompression {
  int number = 0;
  std::vector<int> heads;           ///< [H] numbers in the model; empty: 0, .., H - 1
  std::vector<MethodLoss> methods;  ///< in the order of low_rank_methods()

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("layer", number, "number of the layer");
    visit("head_numbers", heads.empty() ? std::nullopt : std::optional<std::vector<int>>(heads),
          "numbers of the heads in the model, where some have no subspace");
    visit("methods", by_name(methods), "method", {.item = "method"});
  }
};

struct Compression {
  int d = 0, k = 0, rank = 0;
  bool centre = false;
  double temperature = 1;
  bool rotary = false;
  std::uint64_t rows = 0;  ///< of the file of inputs; 0: N(0, I)
  std::uint64_t keys = 0, queries = 0, replicates = 0, seed = 0;
  std::vector<LayerCompression> layers;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("d", d, "dimension of the inputs");
    visit("dim", k, "dimension of a head");
    visit("rank", rank, "rank of the compressed heads");
    visit("centre", centre, "fitted to the covariance of the keys");
    visit("temperature", temperature, "temperature of the softmax");
    visit("positions", rotary ? "rotary" : "absolute", "positions of the model");
    visit("inputs", rows > 0 ? "file" : "normal", "law of the inputs");
    visit("rows", rows, "rows of the file of inputs");
    visit("keys", keys, "keys that a query weighs");
    visit("queries", queries, "queries of each set of keys");
    visit("replicates", replicates, "sets of keys");
    visit("layers", layers, "layers", {.item = "layer"});
  }
};

/// Compresses every head by every method. Scores are computed from the second moments, the rest is
/// simulated; heads have draws of their own, which do not depend on `threads`.
/// \param stop true: throw Stopped; asked for each set of keys
/// Throws InvalidInput, beginning with `source`, where the file has no query and key matrices or
/// the rank does not fit them.
Compression compression_of(const HeadFile& file, const std::string& source,
                           const CompressionSetting& setting, int threads,
                           const std::function<bool()>& stop = {});

/// The heads of rank R as a file of their own.
/// \param stop true: throw Stopped; asked for each head
/// Throws InvalidInput, beginning with `source`, where
/// the method has no best subspace for some head, or its scores have a rank below R.
HeadFile compressed_heads(const HeadFile& file, const std::string& source, LowRankMethod method,
                          const CompressionSetting& setting, int threads,
                          const std::function<bool()>& stop = {});

/// The result as JSON.
std::string compression_json(const Compression& compression, const std::string& file,
                             const Provenance& program);

}  // namespace headlab
