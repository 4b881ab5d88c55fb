// SPDX-License-Identifier: Apache-2.0
#include "validation/compression/compression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"
#include "engine/files/models/projected_head.h"
#include "kernels/counted.h"
#include "kernels/draws.h"
#include "kernels/parallel_for.h"
#include "kernels/philox.h"

namespace headlab {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The numbers of one stream, in turn.
class Stream {
 public:
  Stream(std::uint64_t seed, std::uint64_t number)
      : seed_(seed), stream_(subsequence(Purpose::design, number)) {}

  MatrixXd normals(Index rows, Index columns) {
    MatrixXd out(rows, columns);
    for (Index i = 0; i < out.size(); i += 4) {
      const Words words = philox(seed_, stream_, next_++);
      for (Index pair = 0; pair < 4; pair += 2) {
        const NormalPair z = normal_pair(words.w[pair], words.w[pair + 1]);
        if (i + pair < out.size()) out(i + pair) = z.first;
        if (i + pair + 1 < out.size()) out(i + pair + 1) = z.second;
      }
    }
    return out;
  }
  /// \param from at least one row
  MatrixXd rows(Index count, const MatrixXd& from) {
    MatrixXd out(count, from.cols());
    for (Index i = 0; i < count; ++i) {
      const std::uint32_t word = philox(seed_, stream_, next_++).w[0];
      out.row(i) = from.row(choose(word, static_cast<std::uint32_t>(from.rows())));
    }
    return out;
  }

 private:
  std::uint64_t seed_, stream_;
  std::uint64_t next_ = 0;
};

/// Keys and queries of one head: what they are drawn from, and the roots of their moments.
struct HeadInputs {
  MatrixXd key_rows, query_rows;  ///< [rows][k] projected tokens; empty: normal
  MomentRoot keys, queries;       ///< second moments
  MomentRoot fitted_keys;         ///< what the keys are compressed for

  HeadInputs(const MatrixXd& w_q, const MatrixXd& w_k, const CompressionSetting& setting) {
    if (setting.tokens.size() == 0) {
      keys = fitted_keys = root_of_rows(w_k);
      queries = root_of_rows(w_q);
      return;
    }
    const double scale = 1 / std::sqrt(static_cast<double>(setting.tokens.rows()));
    key_rows = setting.tokens * w_k;
    query_rows = setting.tokens * w_q;
    keys = root_of_rows(scale * key_rows);
    queries = root_of_rows(scale * query_rows);
    fitted_keys = setting.centre
                      ? root_of_rows(scale * (key_rows.rowwise() - key_rows.colwise().mean()))
                      : keys;
  }

  std::optional<LowRankMaps> maps(LowRankMethod method, int rank) const {
    LowRankMaps found = low_rank_maps(method, fitted_keys, queries, rank);
    if (is_ambiguous(found.spectrum, rank)) return std::nullopt;
    return found;
  }
};

/// Softmax of each row.
ArrayXXd softmax_rows(const MatrixXd& logits) {
  const VectorXd largest = logits.rowwise().maxCoeff();
  ArrayXXd w = (logits.colwise() - largest).array().exp();
  w.colwise() /= w.rowwise().sum().eval();
  return w;
}

/// Means of one replicate.
struct Replicates {
  ArrayXd variation, output_error, output, squares, compressed_squares;  ///< [replicates]

  explicit Replicates(Index count)
      : variation(count),
        output_error(count),
        output(count),
        squares(count),
        compressed_squares(count) {}
};

Estimate mean_of(const ArrayXd& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = values.mean();
  return {mean, std::sqrt((values - mean).square().sum() / (n - 1) / n)};
}

/// Of a ratio of means, to first order.
Estimate ratio_of(const ArrayXd& numerator, const ArrayXd& denominator) {
  const double ratio = numerator.mean() / denominator.mean();
  const ArrayXd off = (numerator - ratio * denominator) / denominator.mean();
  return {ratio, mean_of(off).mcse};
}

/// One head by all methods.
class HeadComparison {
 public:
  HeadComparison(const HeadInputs& inputs, const CompressionSetting& setting, double temperature)
      : inputs_(inputs), setting_(setting), temperature_(temperature) {
    for (std::size_t m = 0; m < low_rank_methods().size(); ++m) {
      maps_.push_back(inputs.maps(static_cast<LowRankMethod>(m), setting.rank));
      results_.emplace_back(static_cast<Index>(setting.replicates));
    }
  }

  /// \param head number that its draws are known by
  std::vector<CompressionLoss> losses(std::uint64_t head, const std::function<bool()>& stop) {
    for (std::uint64_t r = 0; r < setting_.replicates; ++r) {
      if (stop && stop()) throw Stopped();
      Stream stream(setting_.seed, head * setting_.replicates + r);
      simulate(stream, static_cast<Index>(r));
    }
    const MatrixXd none(inputs_.keys.values.size(), 0);
    const double whole = squared_score_error(inputs_.keys, inputs_.queries, none, none);
    std::vector<CompressionLoss> all(maps_.size());
    for (std::size_t m = 0; m < maps_.size(); ++m) {
      if (!maps_[m]) continue;
      const Replicates& of = results_[m];
      all[m].scores =
          squared_score_error(inputs_.keys, inputs_.queries, maps_[m]->keys, maps_[m]->queries) /
          whole;
      all[m].weights = mean_of(of.variation);
      all[m].outputs = ratio_of(of.output_error, of.output);
      all[m].noise = ratio_of(of.compressed_squares, of.squares);
    }
    return all;
  }

 private:
  void simulate(Stream& stream, Index replicate) {
    const auto n = static_cast<Index>(setting_.keys), q = static_cast<Index>(setting_.queries);
    const MomentRoot& root = inputs_.keys;
    const Index k = root.values.size();
    MatrixXd keys, queries, values;  // [n][k], [q][k], [n][k]
    if (inputs_.key_rows.size() == 0) {
      values = stream.normals(n, k);
      keys = values * root.values.asDiagonal() * root.vectors.transpose();
      queries = stream.normals(q, k) * inputs_.queries.values.asDiagonal() *
                inputs_.queries.vectors.transpose();
    } else {
      keys = stream.rows(n, inputs_.key_rows);
      queries = stream.rows(q, inputs_.query_rows);
      const VectorXd inverse =
          root.values.unaryExpr([](double value) { return value > 0 ? 1 / value : 0; });
      values = keys * root.vectors * inverse.asDiagonal();
    }
    const ArrayXXd w = softmax_rows(queries * keys.transpose() / temperature_);
    const MatrixXd output = w.matrix() * values;
    const double per_query = 1 / static_cast<double>(q);
    for (std::size_t m = 0; m < maps_.size(); ++m) {
      if (!maps_[m]) continue;
      const MatrixXd logits =
          (queries * maps_[m]->queries) * (keys * maps_[m]->keys).transpose() / temperature_;
      const ArrayXXd compressed = softmax_rows(logits);
      Replicates& of = results_[m];
      of.variation(replicate) = (compressed - w).abs().sum() / 2 * per_query;
      of.output(replicate) = output.squaredNorm() * per_query;
      of.output_error(replicate) =
          (compressed.matrix() * values - output).squaredNorm() * per_query;
      of.squares(replicate) = w.square().sum() * per_query;
      of.compressed_squares(replicate) = compressed.square().sum() * per_query;
    }
  }

  const HeadInputs& inputs_;
  const CompressionSetting& setting_;
  double temperature_;
  std::vector<std::optional<LowRankMaps>> maps_;
  std::vector<Replicates> results_;
};

/// Average over heads, whose draws are independent.
Estimate average(const std::vector<CompressionLoss>& heads, Estimate CompressionLoss::*figure) {
  double sum = 0, square = 0;
  for (const CompressionLoss& one : heads) {
    sum += (one.*figure).value;
    square += (one.*figure).mcse * (one.*figure).mcse;
  }
  const auto count = static_cast<double>(heads.size());
  return {sum / count, std::sqrt(square) / count};
}

CompressionLoss average(const std::vector<CompressionLoss>& heads) {
  CompressionLoss mean{.scores = 0,
                       .weights = average(heads, &CompressionLoss::weights),
                       .outputs = average(heads, &CompressionLoss::outputs),
                       .noise = average(heads, &CompressionLoss::noise)};
  for (const CompressionLoss& one : heads)
    mean.scores += one.scores / static_cast<double>(heads.size());
  return mean;
}

double temperature_of(const HeadFile& file) {
  return file.temperature.value_or(std::sqrt(static_cast<double>(file.k())));
}

void check_heads(const HeadFile& file, const std::string& source,
                 const CompressionSetting& setting) {
  if (file.layers.at(0).w_q.empty()) {
    reject({source}, "",
           "has no w_q and w_k, from which scores are computed - give the NetCDF of "
           "headlab import-heads");
  }
  if (setting.rank < 1 || setting.rank >= file.k()) {
    reject({source}, "",
           "has heads of dimension " + std::to_string(file.k()) + ", and rank " +
               std::to_string(setting.rank) + " is not below it");
  }
  const Index columns = setting.tokens.cols();
  if (setting.tokens.size() > 0 && columns != file.d()) {
    reject({source}, "",
           "has heads on d = " + std::to_string(file.d()) + ", the inputs have " +
               counted(static_cast<std::uint64_t>(columns), "column"));
  }
}

/// Number of a head in its model.
int head_number(const HeadLayer& layer, std::size_t h) {
  return layer.heads.empty() ? static_cast<int>(h) : layer.heads[h];
}

}  // namespace

Compression compression_of(const HeadFile& file, const std::string& source,
                           const CompressionSetting& setting, int threads,
                           const std::function<bool()>& stop) {
  check_heads(file, source, setting);
  Compression out{.d = file.d(),
                  .k = file.k(),
                  .rank = setting.rank,
                  .centre = setting.centre,
                  .temperature = temperature_of(file),
                  .rotary = file.rotary,
                  .rows = static_cast<std::uint64_t>(setting.tokens.rows()),
                  .keys = setting.keys,
                  .queries = setting.queries,
                  .replicates = setting.replicates,
                  .seed = setting.seed};
  for (const HeadLayer& layer : file.layers) {
    const std::size_t heads = layer.w_k.size();
    std::vector<std::vector<CompressionLoss>> losses(heads);
    parallel_for(heads, threads, [&](std::size_t h) {
      const HeadInputs inputs(layer.w_q[h], layer.w_k[h], setting);
      const auto number =
          static_cast<std::uint64_t>(layer.number) * static_cast<std::uint64_t>(file.heads()) +
          static_cast<std::uint64_t>(head_number(layer, h));
      losses[h] = HeadComparison(inputs, setting, out.temperature).losses(number, stop);
    });
    LayerCompression& of_layer = out.layers.emplace_back();
    of_layer.number = layer.number;
    of_layer.heads = layer.heads;
    for (std::size_t m = 0; m < low_rank_methods().size(); ++m) {
      MethodLoss& method = of_layer.methods.emplace_back();
      method.name = low_rank_methods()[m];
      for (std::size_t h = 0; h < heads; ++h) method.heads.push_back(losses[h][m]);
      method.mean = average(method.heads);
    }
  }
  return out;
}

HeadFile compressed_heads(const HeadFile& file, const std::string& source, LowRankMethod method,
                          const CompressionSetting& setting, int threads,
                          const std::function<bool()>& stop) {
  check_heads(file, source, setting);
  const std::string& name = low_rank_methods()[static_cast<std::size_t>(method)];
  HeadFile out = file;
  out.temperature = temperature_of(file);
  // Only maps of the keys alone are one for the heads that share them.
  if (method != LowRankMethod::k_svd && file.kv_heads > 0) out.kv_heads = file.heads();
  out.left_out += (out.left_out.empty() ? "" : ", ") +
                  ("scores beyond rank " + std::to_string(setting.rank)) + " (" + name + ")";
  out.deficient.clear();
  for (HeadLayer& layer : out.layers) {
    const HeadLayer whole = layer;
    const std::size_t heads = whole.w_k.size();
    std::vector<HeadLayer> made(heads);
    parallel_for(heads, threads, [&](std::size_t h) {
      if (stop && stop()) throw Stopped();
      const std::string which = "layer " + std::to_string(whole.number) + ", head " +
                                std::to_string(head_number(whole, h));
      const auto maps = HeadInputs(whole.w_q[h], whole.w_k[h], setting).maps(method, setting.rank);
      if (!maps) {
        reject({source}, "",
               which + ": " + name + " has no best subspace: singular values " +
                   std::to_string(setting.rank) + " and " + std::to_string(setting.rank + 1) +
                   " agree to 1e-9 - choose " + "another --by or --rank");
      }
      const int rank = add_projected_head(made[h], whole.w_q[h] * maps->queries,
                                          whole.w_k[h] * maps->keys, file.rotary);
      if (rank < setting.rank) {
        reject({source}, "",
               which + ": scores have rank " + std::to_string(rank) + " - choose a smaller --rank");
      }
    });
    layer = {.number = whole.number, .heads = whole.heads};
    for (HeadLayer& one : made) append_heads(layer, std::move(one));
    // Heads without keys of full rank have none of the new one.
    for (int head = 0, at = 0; head < file.heads() && !layer.heads.empty(); ++head) {
      if (at < static_cast<int>(layer.heads.size()) &&
          layer.heads[static_cast<std::size_t>(at)] == head) {
        ++at;
      } else {
        out.deficient.push_back({.layer = layer.number, .head = head, .rank = 0});
      }
    }
  }
  return out;
}

std::string compression_json(const Compression& compression, const std::string& file,
                             const Provenance& program) {
  return json_text(MadeDocument{MadeBy{program, {}, compression.seed},
                                [&](auto& visit) {
                                  visit("file", file, "file of the heads");
                                  compression.fields(visit);
                                }},
                   0);
}

}  // namespace headlab
