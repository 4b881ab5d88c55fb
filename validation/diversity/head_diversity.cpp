// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/head_diversity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include <Eigen/Core>

#include "engine/files/document.h"
#include "engine/files/error.h"
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

/// One set of random subspaces, one a group.
struct RandomSet {
  double chordal = 0, spectral = 0, overlap = 0;
  std::vector<MatrixXd> products;  ///< of keys [pairs of groups], of queries [pairs], W_l^T W_h
};

/// Mean and sd of an index under random heads.
struct Reference {
  double mean = 0, sd = 0, mcse = 0;
};

std::size_t pairs_of(int heads) {
  return static_cast<std::size_t>(heads) * static_cast<std::size_t>(heads - 1) / 2;
}

int count_of_sets(int subspaces, int d, int k) {
  const double width = static_cast<double>(subspaces) * k;
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

/// The reference of `share` times an index.
Reference scaled(const Reference& reference, double share) {
  return {
      .mean = share * reference.mean, .sd = share * reference.sd, .mcse = share * reference.mcse};
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
    out_.groups = file.groups();
    out_.rotary = file.rotary;
    out_.layers.resize(file.layers.size());
    has_pairs_ = out_.heads > 1;
    with_queries_ = has_pairs_ && !file.rotary && !file.layers[0].w_q.empty();
    if (has_pairs_) shares_ = group_shares(out_.d, out_.k, out_.heads, out_.groups);
    if (has_pairs_ && out_.k < out_.d && (out_.groups > 1 || with_queries_)) {
      out_.random_sets = count_of_sets(with_queries_ ? out_.heads : out_.groups, out_.d, out_.k);
    }
  }

  HeadDiversity run(int threads, const std::function<bool()>& stop) {
    const auto go_on = [&] {
      if (stop && stop()) throw Stopped();
    };
    sets_.resize(static_cast<std::size_t>(out_.random_sets));
    parallel_for(sets_.size(), threads, [&](std::size_t s) {
      go_on();
      sets_[s] = draw(s);
    });
    parallel_for(out_.layers.size(), threads, [&](std::size_t n) {
      go_on();
      layer(n);
    });
    return std::move(out_);
  }

 private:
  int group_of(std::size_t head) const { return static_cast<int>(head) * out_.groups / out_.heads; }

  SubspacePairs haar_pairs(std::size_t set, int subspaces) const {
    const HaarSubspaces law{.seed = seed_of_set(out_.seed, set)};
    return subspace_pairs(
        to_matrices(law.generate({.d = out_.d, .heads = subspaces, .k = out_.k, .n = 1})),
        out_.bandwidth);
  }

  RandomSet draw(std::size_t s) const {
    SubspacePairs pairs = haar_pairs(s, out_.groups);
    RandomSet set{.chordal = pairs.indices[0].value.value_or(0),
                  .spectral = pairs.indices[1].value.value_or(0),
                  .overlap = pairs.indices[2].value.value_or(0)};
    if (!with_queries_) return set;
    // Queries have a subspace a head, whatever keys they share.
    const bool of_queries = s >= sets_.size() / 2;
    if (of_queries && out_.groups < out_.heads) pairs = haar_pairs(sets_.size() + s, out_.heads);
    set.products = std::move(pairs.products);
    return set;
  }

  /// Refuses heads of one group that have other subspaces than its first.
  void require_groups(const Matrices& subspaces, int number) const {
    constexpr double tolerance = 1e-6;
    std::size_t first = 0;
    for (std::size_t h = 1; h < subspaces.size(); ++h) {
      if (group_of(h) != group_of(first)) {
        first = h;
        continue;
      }
      const MatrixXd residual =
          subspaces[h] - subspaces[first] * (subspaces[first].transpose() * subspaces[h]);
      if ((residual.array().abs() <= tolerance).all()) continue;
      reject(Location{source_}, "",
             "layer " + std::to_string(number) + ": heads " + std::to_string(first) + " and " +
                 std::to_string(h) + " have different keys but are of one group - are there " +
                 std::to_string(out_.groups) + " groups of heads that share keys?");
    }
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
    require_groups(subspaces, given.number);
    SubspacePairs pairs = subspace_pairs(subspaces, out_.bandwidth);
    bound_by_groups(pairs.indices);
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

  /// Lowers the upper bounds of chordal, spectral and overlap to those of heads in groups.
  void bound_by_groups(std::vector<Index>& indices) const {
    if (out_.groups == out_.heads) return;
    const double h = out_.heads, k = out_.k;
    const double reach = std::min(out_.groups * k, static_cast<double>(out_.d));
    if (indices[0].upper_bound) indices[0].upper_bound = h / (h - 1) * (1 - k / reach);
    if (indices[1].upper_bound) *indices[1].upper_bound *= shares_.spectral;
    if (indices[2].upper_bound) *indices[2].upper_bound *= shares_.pairs;
  }

  /// The law of `chordal` over the subspaces of the groups; of one group it is 0.
  HaarNull null_of_groups() const {
    if (out_.groups < 2) return {0, 0};
    return haar_null(out_.d, out_.k, out_.groups);
  }

  Reference chordal_reference() const {
    if (!has_pairs_) return {};
    const HaarNull null = null_of_groups();
    return scaled({.mean = null.mean, .sd = null.sd}, shares_.pairs);
  }

  Reference reference(double RandomSet::*member) const {
    if (sets_.empty()) return {};
    const double share = member == &RandomSet::spectral ? shares_.spectral : shares_.pairs;
    return scaled(regressed(sets_, member, null_of_groups()), share);
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
    const bool grouped = out_.groups < out_.heads;
    std::vector<VectorXd> s;
    std::vector<MatrixXd> v;  // of heads in groups: right singular vectors in the group's keys
    for (std::size_t h = 0; h < given.w_q.size(); ++h) {
      s.push_back(query_key_singular_values(given.w_q[h], given.w_k[h]));
      if (grouped) v.push_back(key_singular_vectors(given.w_q[h], given.w_k[h]));
    }
    const std::size_t draws = sets_.size() / 2;
    const auto key_product = [&](std::size_t l, std::size_t h, const RandomSet& keys) -> MatrixXd {
      const auto a = static_cast<std::size_t>(group_of(l));
      const auto b = static_cast<std::size_t>(group_of(h));
      const auto groups = static_cast<std::size_t>(out_.groups);
      if (a == b) return v[l].transpose() * v[h];
      const MatrixXd& product = keys.products[a * (2 * groups - a - 1) / 2 + b - a - 1];
      return grouped ? MatrixXd(v[l].transpose() * product * v[h]) : product;
    };

    // Terms whose sums are uncorrelated: the pairs of heads of two groups, by the groups, and each
    // pair within a group.
    std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> terms;
    std::size_t pair = 0;
    for (std::size_t l = 0; l + 1 < s.size(); ++l) {
      for (std::size_t h = l + 1; h < s.size(); ++h, ++pair) {
        const bool within = group_of(l) == group_of(h);
        const std::size_t outside = s.size();
        std::vector<double>& values =
            terms[within ? std::pair{outside + l, h}
                         : std::pair{static_cast<std::size_t>(group_of(l)),
                                     static_cast<std::size_t>(group_of(h))}];
        values.resize(draws);
        for (std::size_t i = 0; i < draws; ++i) {
          values[i] -=
              std::expm1(log_query_key_correlation(s[l], s[h], sets_[draws + i].products[pair],
                                                   key_product(l, h, sets_[i]), out_.temperature));
        }
      }
    }
    const auto pairs = static_cast<double>(pairs_of(out_.heads));
    double mean = 0, variance = 0;
    for (const auto& [groups, values] : terms) {
      double sum = 0;
      for (const double value : values) sum += value;
      const double mean_of_term = sum / static_cast<double>(draws);
      mean += mean_of_term / pairs;
      for (const double value : values) {
        variance += (value - mean_of_term) * (value - mean_of_term) /
                    static_cast<double>(draws - 1) / (pairs * pairs);
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
  GroupShares shares_{.pairs = 1, .spectral = 1};
  std::vector<RandomSet> sets_;
};

/// Layers with the same number of heads together.
HeadDiversity by_number_of_heads(const HeadFile& file, const std::string& source,
                                 std::uint64_t seed, int threads,
                                 const std::function<bool()>& stop) {
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
    out = Computation(part, source, seed).run(threads, stop);
    random_sets = std::max(random_sets, out.random_sets);
    for (std::size_t i = 0; i < own.size(); ++i) layers[own[i]] = std::move(out.layers[i]);
  }
  out.heads = file.heads();
  out.groups = file.groups();
  out.random_sets = random_sets;
  out.layers = std::move(layers);
  return out;
}

}  // namespace

HeadDiversity head_diversity(const HeadFile& file, const std::string& source, std::uint64_t seed,
                             int threads, const std::function<bool()>& stop) {
  const bool all_there = std::ranges::all_of(file.layers, [&](const HeadLayer& layer) {
    return layer.subspaces.size() == static_cast<std::size_t>(file.heads());
  });
  return all_there ? Computation(file, source, seed).run(threads, stop)
                   : by_number_of_heads(file, source, seed, threads, stop);
}

}  // namespace headlab
