// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/head_diversity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include <Eigen/Core>

#include "engine/files/document.h"
#include "engine/scenario/law/subspaces/haar.h"
#include "engine/scenario/subspaces.h"
#include "kernels/decompositions.h"
#include "kernels/parallel_for.h"
#include "validation/diversity/indices.h"
#include "validation/diversity/query_key.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Sets of random heads: as many as about a second of one core draws, between bounds. Even, because
/// half of them serve as the queries of the others.
constexpr double work_of_sets = 1.5e9;
constexpr int min_sets = 6, max_sets = 200;

/// Seeds of random heads lie above those that a scenario may name, so that heads drawn by the law
/// `haar` are never compared with themselves.
std::uint64_t seed_of_set(std::uint64_t seed, std::size_t set) {
  return seed + ((std::uint64_t{1} + set) << 53);
}

/// One set of random heads.
struct RandomSet {
  double chordal = 0, spectral = 0, overlap = 0;
  std::vector<MatrixXd> products;  ///< [pairs], W_l^T W_h
};

/// Mean and sd of an index under random heads.
struct Reference {
  double mean = 0, sd = 0, mcse = 0;
};

std::size_t pairs_of(int heads) {
  return static_cast<std::size_t>(heads) * static_cast<std::size_t>(heads - 1) / 2;
}

int count_of_sets(int heads, int d, int k) {
  const double width = static_cast<double>(heads) * k;
  const double sets = work_of_sets / (width * width * d);
  return 2 * static_cast<int>(std::clamp(sets, double(min_sets), double(max_sets)) / 2);
}

/// Regression of an index on `chordal`, whose mean and sd are known exactly.
Reference regressed(const std::vector<RandomSet>& sets, double RandomSet::*member,
                    const HaarNull& chordal) {
  const auto count = static_cast<double>(sets.size());
  double mean = 0, mean_chordal = 0;
  for (const RandomSet& set : sets) {
    mean += set.*member / count;
    mean_chordal += set.chordal / count;
  }
  double xx = 0, xy = 0, yy = 0;
  for (const RandomSet& set : sets) {
    const double x = set.chordal - mean_chordal, y = set.*member - mean;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  const double slope = xx > 0 ? xy / xx : 0;
  const double residual = std::max(yy - slope * xy, 0.0) / (count - 2);
  return {.mean = mean + slope * (chordal.mean - mean_chordal),
          .sd = std::sqrt(slope * slope * chordal.sd * chordal.sd + residual),
          .mcse = std::sqrt(residual / count)};
}

ReferencedIndex referenced(const Index& index, const Reference& reference) {
  ReferencedIndex out{.name = index.name, .value = index.value, .upper_bound = index.upper_bound};
  if (!index.value) return out;
  out.random_mean = reference.mean;
  out.random_mcse = reference.mcse;
  out.random_sd = reference.sd;
  // At k = d every subspace is the same and nothing varies but by rounding.
  if (reference.sd > 64 * std::numeric_limits<double>::epsilon()) {
    out.z = (*index.value - reference.mean) / reference.sd;
  }
  return out;
}

/// The cosines of the principal angles from W_l^T W_h. The eigenvalues of its square take a fifth
/// of the time of its singular values and hold a cosine c to about k eps/(2 c): enough unless c is
/// small.
std::vector<double> cosines_of(const MatrixXd& product) {
  constexpr double min_square = 1e-7;
  const auto [squares, vectors, converged] = symmetric_eigenvalues(product.transpose() * product);
  if (!converged || !(squares(0) >= min_square)) {
    return principal_cosines(product);
  }
  std::vector<double> cosines;
  for (Eigen::Index j = squares.size(); j-- > 0;) {
    cosines.push_back(std::min(std::sqrt(squares(j)), 1.0));
  }
  return cosines;
}

class Computation {
 public:
  Computation(const HeadFile& file, const std::string& source, std::uint64_t seed)
      : file_(file), source_(source) {
    out_.heads = file.heads();
    out_.d = file.d();
    out_.k = file.k();
    out_.temperature = file.temperature.value_or(std::sqrt(static_cast<double>(out_.k)));
    out_.bandwidth = std::sqrt(out_.temperature);
    out_.seed = seed;
    out_.rotary = file.rotary;
    out_.layers.resize(file.layers.size());
    has_pairs_ = out_.heads > 1;
    with_queries_ = has_pairs_ && !file.rotary && !file.layers[0].w_q.empty();
    if (has_pairs_ && out_.k < out_.d) {
      out_.random_sets = count_of_sets(out_.heads, out_.d, out_.k);
    }
  }

  HeadDiversity run(int threads) {
    sets_.resize(static_cast<std::size_t>(out_.random_sets));
    parallel_for(sets_.size(), threads, [&](std::size_t s) { sets_[s] = draw(s); });
    parallel_for(out_.layers.size(), threads, [&](std::size_t n) { layer(n); });
    return std::move(out_);
  }

 private:
  RandomSet draw(std::size_t s) const {
    const HaarSubspaces law{.seed = seed_of_set(out_.seed, s)};
    SubspacePairs pairs = subspace_pairs(
        to_matrices(law.generate({.d = out_.d, .heads = out_.heads, .k = out_.k, .n = 1})),
        out_.bandwidth);
    return {.chordal = *pairs.indices[0].value,
            .spectral = *pairs.indices[1].value,
            .overlap = *pairs.indices[2].value,
            .products = with_queries_ ? std::move(pairs.products) : std::vector<MatrixXd>()};
  }

  void layer(std::size_t n) {
    const HeadLayer& given = file_.layers[n];
    LayerDiversity& layer = out_.layers[n];
    layer.number = given.number;
    layer.heads = given.heads;
    Matrices subspaces;
    for (std::size_t h = 0; h < given.subspaces.size(); ++h) {
      const auto of_head = [&](const char* what) {
        return std::string(what) + " of layer " + std::to_string(given.number) + ", head " +
               std::to_string(h);
      };
      subspaces.push_back(orthonormal(given.subspaces[h], of_head("matrix")));
      layer.condition_numbers.push_back(
          condition(given.w_k.empty() ? given.subspaces[h] : given.w_k[h],
                    of_head(given.w_k.empty() ? "matrix" : "w_k")));
    }
    const SubspacePairs pairs = subspace_pairs(subspaces, out_.bandwidth);
    for (const MatrixXd& product : pairs.products) {
      layer.cosines.push_back(cosines_of(product));
      layer.gaussian.push_back(overlap(layer.cosines.back(), out_.bandwidth));
    }
    layer.indices.push_back(referenced(pairs.indices[0], chordal_reference()));
    layer.indices.push_back(referenced(pairs.indices[1], reference(&RandomSet::spectral)));
    layer.indices.push_back(referenced(pairs.indices[2], reference(&RandomSet::overlap)));
    layer.indices.push_back(with_queries_ ? query_key(given, layer)
                                          : ReferencedIndex{.name = "qk"});
  }

  Reference chordal_reference() const {
    if (!has_pairs_) return {};
    const HaarNull null = haar_null(out_.d, out_.k, out_.heads);
    return {.mean = null.mean, .sd = null.sd};
  }

  Reference reference(double RandomSet::*member) const {
    if (sets_.empty()) return {};
    return regressed(sets_, member, haar_null(out_.d, out_.k, out_.heads));
  }

  ReferencedIndex query_key(const HeadLayer& given, LayerDiversity& layer) const {
    try {
      double sum = 0;
      for (const auto& pair : query_key_correlations(given.w_q, given.w_k, out_.temperature)) {
        layer.query_key.push_back(pair.mean);
        layer.log_query_key.push_back(pair.mean_log);
        sum -= std::expm1(pair.log_mean);
      }
      const Index index{"qk", sum / static_cast<double>(pairs_of(out_.heads)), {}};
      if (sets_.empty()) return {.name = "qk", .value = index.value};
      return referenced(index, query_key_reference(given));
    } catch (const std::invalid_argument& problem) {
      reject(Location{source_}, "",
             "layer " + std::to_string(given.number) + ": " + problem.what());
    }
  }

  /// The first half of the sets are the subspaces of keys, the second those of queries.
  Reference query_key_reference(const HeadLayer& given) const {
    std::vector<VectorXd> s;
    for (std::size_t h = 0; h < given.w_q.size(); ++h) {
      s.push_back(query_key_singular_values(given.w_q[h], given.w_k[h]));
    }
    const std::size_t draws = sets_.size() / 2;
    const auto pairs = static_cast<double>(pairs_of(out_.heads));
    double mean = 0, variance = 0;
    std::size_t pair = 0;
    for (std::size_t l = 0; l + 1 < s.size(); ++l) {
      for (std::size_t h = l + 1; h < s.size(); ++h, ++pair) {
        std::vector<double> values;
        double sum = 0;
        for (std::size_t i = 0; i < draws; ++i) {
          values.push_back(
              -std::expm1(log_query_key_correlation(s[l], s[h], sets_[draws + i].products[pair],
                                                    sets_[i].products[pair], out_.temperature)));
          sum += values.back();
        }
        const double mean_of_pair = sum / static_cast<double>(draws);
        mean += mean_of_pair / pairs;
        for (const double value : values) {
          variance += (value - mean_of_pair) * (value - mean_of_pair) /
                      static_cast<double>(draws - 1) / (pairs * pairs);
        }
      }
    }
    return {.mean = mean,
            .sd = std::sqrt(variance),
            .mcse = std::sqrt(variance / static_cast<double>(draws))};
  }

  /// The frame itself, or the Q of its QR where it is none.
  MatrixXd orthonormal(const MatrixXd& w, const std::string& what) const {
    constexpr double tolerance = 1e-10;
    const MatrixXd excess = w.transpose() * w - MatrixXd::Identity(w.cols(), w.cols());
    if ((excess.array().abs() <= tolerance).all()) return w;
    condition(w, what);
    return signed_qr(w / w.cwiseAbs().maxCoeff()).q;
  }

  /// Largest over smallest singular value.
  double condition(const MatrixXd& w, const std::string& what) const {
    // Scaled, so that no square leaves float64.
    const double largest = w.cwiseAbs().maxCoeff();
    const HouseholderQr qr(w / (largest > 0 ? largest : 1));
    const VectorXd s = singular_values(qr.upper());
    const double rounding =
        static_cast<double>(w.rows()) * std::numeric_limits<double>::epsilon() * s(0);
    if (!(s(s.size() - 1) > rounding)) {
      reject(Location{source_}, "",
             what + " has rank " + std::to_string((s.array() > rounding).count()) +
                 ", below k = " + std::to_string(w.cols()));
    }
    return s(0) / s(s.size() - 1);
  }

  const HeadFile& file_;
  const std::string& source_;
  HeadDiversity out_;
  bool has_pairs_ = false, with_queries_ = false;
  std::vector<RandomSet> sets_;
};

/// Layers with the same number of heads together.
HeadDiversity by_number_of_heads(const HeadFile& file, const std::string& source,
                                 std::uint64_t seed, int threads) {
  std::map<std::size_t, std::vector<std::size_t>> places;
  for (std::size_t n = 0; n < file.layers.size(); ++n) {
    places[file.layers[n].subspaces.size()].push_back(n);
  }
  HeadDiversity out;
  std::vector<LayerDiversity> layers(file.layers.size());
  int random_sets = 0;
  for (const auto& [heads, own] : places) {
    HeadFile part = file;
    part.layers.clear();
    for (const std::size_t n : own) part.layers.push_back(file.layers[n]);
    part.model_heads = 0;
    // Heads of a group share their keys, so that groups are whole or absent.
    part.kv_heads = file.kv_heads * static_cast<int>(heads) / file.heads();
    out = Computation(part, source, seed).run(threads);
    random_sets = std::max(random_sets, out.random_sets);
    for (std::size_t i = 0; i < own.size(); ++i) layers[own[i]] = std::move(out.layers[i]);
  }
  out.heads = file.heads();
  out.random_sets = random_sets;
  out.layers = std::move(layers);
  return out;
}

}  // namespace

HeadDiversity head_diversity(const HeadFile& file, const std::string& source, std::uint64_t seed,
                             int threads) {
  const bool all_there = std::ranges::all_of(file.layers, [&](const HeadLayer& layer) {
    return layer.subspaces.size() == static_cast<std::size_t>(file.heads());
  });
  return all_there ? Computation(file, source, seed).run(threads)
                   : by_number_of_heads(file, source, seed, threads);
}

}  // namespace headlab
