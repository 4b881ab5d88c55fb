// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/import_heads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <Eigen/Core>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/models/model_checkpoint.h"
#include "engine/files/models/projected_head.h"
#include "engine/files/npy_file.h"
#include "engine/files/words.h"
#include "kernels/parallel_for.h"

namespace headlab {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The width of a model; with it no product of lengths overflows.
constexpr std::uint64_t max_model_dimensions = 1 << 16;

/// What PEFT puts in front of the names of a model that it adapts.
constexpr std::string_view adapted = "base_model.model.";

/// `pattern` with the number of the layer in place of '#', the one before in place of '@'.
std::string numbered(std::string pattern, int layer) {
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '#') return pattern.replace(at, 1, std::to_string(layer));
    if (pattern[at] == '@') return pattern.replace(at, 1, std::to_string(layer - 1));
  }
  return pattern;
}

class Importer {
 public:
  Importer(const std::string& path, const HeadImport& import, int threads)
      : file_(path), import_(import), names_(*import.architecture), threads_(threads) {}

  HeadFile import() {
    const int heads = import_.counts.heads, kv_heads = import_.counts.kv_heads;
    if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) {
      throw InvalidInput("--kv-heads: " + std::to_string(kv_heads) + " does not divide the " +
                         std::to_string(heads) + " heads into groups");
    }
    HeadFile out;
    out.model_heads = heads;
    const std::vector<int> numbers = layers();
    biases_ = import_.biases && std::ranges::any_of(numbers, [&](int n) { return has_biases(n); });
    for (const int number : numbers) {
      HeadLayer layer = read_layer(number, out.deficient);
      if (!layer.subspaces.empty()) out.layers.push_back(std::move(layer));
    }
    if (out.layers.empty()) fail("has no head whose keys have full rank");
    const HeadCounts& counts = import_.counts;
    out.temperature = counts.temperature.value_or(std::sqrt(static_cast<double>(out.k()))) /
                      (counts.rotary_factor * counts.rotary_factor);
    out.constant_coordinate = biases_;
    out.rotary = names_.rotary;
    out.architecture = names_.name;
    out.origin = file_.source();
    out.left_out = left_out(out.layers[0].number);
    out.kv_heads = import_.counts.kv_heads;
    return out;
  }

 private:
  /// A weight as a matrix [in][out], so that a token x becomes matrix^T x. With biases the last of
  /// the inputs is 1.
  struct Projections {
    MatrixXd query;  ///< [d][H k]
    MatrixXd key;    ///< [d][G k]
  };

  [[noreturn]] void fail(const std::string& problem) const {
    reject({file_.source()}, "", problem);
  }

  /// The same about one tensor, whose file the line names.
  [[noreturn]] void fail(const std::string& tensor, const std::string& problem) {
    reject({file_.source_of(tensor)}, "", problem);
  }

  /// The full name of the first of these tensors that is there.
  std::optional<std::string> find(const std::vector<std::string>& patterns, int layer) const {
    // Of what wraps a model: torch.compile, and modules that run it on several devices.
    for (const char* wrapper : {"", "_orig_mod.", "module.", "module._orig_mod."}) {
      for (const std::string& prefix : names_.prefixes) {
        for (const std::string& pattern : patterns) {
          const std::string name = wrapper + prefix + numbered(pattern, layer);
          if (file_.has(name)) return name;
        }
      }
    }
    return {};
  }

  std::string need(const std::vector<std::string>& patterns, int layer) const {
    const auto name = find(patterns, layer);
    if (name) return *name;
    std::string problem = "has no tensor " + names_.prefixes[0] + numbered(patterns[0], layer);
    const int count = contiguous_layers();
    if (count > 0) {
      problem += " (layers found: 0 to " + std::to_string(count - 1) + ")";
      if (layer >= count) {
        problem += " - choose one of them with --layer, or give the folder of all shards";
      }
    } else if (file_.has_names_from(std::string(adapted))) {
      problem += " - its names begin with " + std::string(adapted) +
                 ", as PEFT writes adapters: save the model with its adapter merged into it "
                 "(merge_and_unload)";
    } else {
      problem += " - is it of another architecture than " + names_.name +
                 ", or one shard of several? (then name their folder)";
    }
    fail(problem);
  }

  int contiguous_layers() const {
    int count = 0;
    while (count < max_model_layers && find({names_.query}, count)) ++count;
    return count;
  }

  std::vector<int> layers() const {
    const auto& known = import_.counts.layers;
    if (import_.layer) {
      if (known && *import_.layer >= *known) {
        fail("has no layer " + std::to_string(*import_.layer) + ": the model has layers 0 to " +
             std::to_string(*known - 1));
      }
      return {*import_.layer};
    }
    const int count = known.value_or(contiguous_layers());
    if (count == 0) need({names_.query}, 0);
    std::vector<int> all;
    for (int layer = 0; layer < count; ++layer) all.push_back(layer);
    return all;
  }

  MatrixXd matrix(const std::string& name) {
    const auto& shape = file_.info(name).shape;
    if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > 3 * max_model_dimensions ||
        shape[1] > 3 * max_model_dimensions) {
      fail(name,
           "tensor " + name + " is " + shape_text(shape) + ", needs two axes of usual lengths");
    }
    const std::vector<double> numbers = file_.read(name);
    using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const ByRows> rows(numbers.data(), static_cast<Index>(shape[0]),
                                        static_cast<Index>(shape[1]));
    MatrixXd weight = names_.input_first ? MatrixXd(rows) : MatrixXd(rows.transpose());
    if (!biases_) return weight;
    weight.conservativeResize(weight.rows() + 1, Eigen::NoChange);
    weight.bottomRows(1).setZero();
    const std::string bias = bias_of(name);
    if (file_.has(bias)) weight.bottomRows(1) = plain_vector(bias, weight.cols()).transpose();
    return weight;
  }

  /// The bias that goes with a weight, which is there or not.
  static std::string bias_of(std::string weight) {
    const std::size_t at = weight.rfind("weight");
    return at == std::string::npos ? "" : weight.replace(at, 6, "bias");
  }

  /// The names of gains of the norm in front of a layer.
  const std::vector<std::string>& gains(int layer) const {
    return layer == 0 && !names_.first_gains.empty() ? names_.first_gains : names_.gains;
  }

  bool has_bias(const std::vector<std::string>& weights, int layer) const {
    const auto name = find(weights, layer);
    return name && file_.has(bias_of(*name));
  }

  bool has_biases(int layer) const {
    return has_bias({names_.query}, layer) || has_bias({names_.key}, layer) ||
           has_bias(gains(layer), layer);
  }

  Projections projections(int layer) {
    const std::string query = need({names_.query}, layer);
    Projections out = names_.layout == ProjectionLayout::separate
                          ? separate(query, need({names_.key}, layer))
                          : fused(query);
    const auto require = [&](const char* what, Index found, const std::optional<int>& said) {
      if (!said || found == *said) return;
      fail(query, "tensor " + query + " has " + what + " of dimension " + std::to_string(found) +
                      ", not " + std::to_string(*said) + " as config.json says");
    };
    require("tokens", inputs(out.query), import_.counts.dimensions);
    require("heads", out.query.cols() / import_.counts.heads, import_.counts.head_dim);
    return out;
  }

  Projections separate(const std::string& query, const std::string& key) {
    Projections out{.query = matrix(query), .key = matrix(key)};
    const Index heads = import_.counts.heads, kv_heads = import_.counts.kv_heads;
    const Index k = out.query.cols() / heads;
    if (out.key.rows() != out.query.rows() || k * heads != out.query.cols() ||
        k * kv_heads != out.key.cols() || k > inputs(out.query)) {
      fail(query, "tensors " + query + " and " + key + " project " +
                      std::to_string(inputs(out.query)) + " and " +
                      std::to_string(inputs(out.key)) + " dimensions to " +
                      std::to_string(out.query.cols()) + " and " + std::to_string(out.key.cols()) +
                      ", which is not H k and G k for " + counts_text() +
                      " - are --heads and --kv-heads right?");
    }
    return out;
  }

  /// Of a weight, without the constant one.
  Index inputs(const MatrixXd& weight) const { return weight.rows() - (biases_ ? 1 : 0); }

  /// The parts of a tensor that holds queries, keys and values.
  Projections fused(const std::string& name) {
    const MatrixXd all = matrix(name);
    const Index heads = import_.counts.heads, kv_heads = import_.counts.kv_heads;
    const Index parts = heads + 2 * kv_heads, k = all.cols() / parts;
    if (k < 1 || k * parts != all.cols() || k > inputs(all)) {
      fail(name, "tensor " + name + " projects " + std::to_string(inputs(all)) + " dimensions to " +
                     std::to_string(all.cols()) + ", which is not (H + 2 G) k for " +
                     counts_text() + " - are --heads and --kv-heads right?");
    }
    if (names_.layout == ProjectionLayout::query_key_value) {
      return {.query = all.leftCols(heads * k), .key = all.middleCols(heads * k, kv_heads * k)};
    }
    Projections out{.query = MatrixXd(all.rows(), heads * k),
                    .key = MatrixXd(all.rows(), kv_heads * k)};
    const Index shared = heads / kv_heads;
    for (Index g = 0; g < kv_heads; ++g) {
      const Index first = g * (shared + 2) * k;
      out.query.middleCols(g * shared * k, shared * k) = all.middleCols(first, shared * k);
      out.key.middleCols(g * k, k) = all.middleCols(first + shared * k, k);
    }
    return out;
  }

  std::string counts_text() const {
    return "H = " + std::to_string(import_.counts.heads) +
           " heads and G = " + std::to_string(import_.counts.kv_heads) + " of keys";
  }

  VectorXd plain_vector(const std::string& name, Index length) {
    const auto& shape = file_.info(name).shape;
    if (shape != std::vector<std::uint64_t>{static_cast<std::uint64_t>(length)}) {
      fail(name,
           "tensor " + name + " is " + shape_text(shape) + ", needs " + std::to_string(length));
    }
    const std::vector<double> numbers = file_.read(name);
    return Eigen::Map<const VectorXd>(numbers.data(), length);
  }
  VectorXd gain(const std::string& name, Index length) {
    return plain_vector(name, length).array() + names_.gain_offset;
  }

  /// Folds in the gain of the norm in front, and those of norms of single queries and keys.
  void fold_gains(Projections& w, int layer) {
    if (!names_.gains.empty()) fold_gain_in_front(w, need(gains(layer), layer));
    if (names_.query_norm.empty()) return;
    const Index k = w.query.cols() / import_.counts.heads;
    const auto fold = [&](const std::string& pattern, MatrixXd& all) {
      const std::string name = need({pattern}, layer);
      const bool each = file_.info(name).shape == std::vector{static_cast<std::uint64_t>(k)};
      const VectorXd own = gain(name, each ? k : all.cols());
      for (Index h = 0; h < all.cols() / k; ++h) {
        all.middleCols(h * k, k) *= own.segment(each ? 0 : h * k, k).asDiagonal();
      }
    };
    fold(names_.query_norm, w.query);
    fold(names_.key_norm, w.key);
  }

  void fold_gain_in_front(Projections& w, const std::string& name) {
    const Index d = inputs(w.query);
    const VectorXd g = gain(name, d);
    const bool shifts = biases_ && file_.has(bias_of(name));
    const VectorXd shift = shifts ? plain_vector(bias_of(name), d) : VectorXd(VectorXd::Zero(d));
    for (MatrixXd* all : {&w.query, &w.key}) {
      if (shifts) all->bottomRows(1) += shift.transpose() * all->topRows(d);
      all->topRows(d) = g.asDiagonal() * all->topRows(d);
    }
  }

  /// What the heads lack of the model's logits.
  std::string left_out(int layer) const {
    std::vector<std::string> all;
    if (!names_.left_out.empty()) all.push_back(names_.left_out);
    if (!biases_) {
      if (has_bias({names_.query}, layer) || has_bias({names_.key}, layer)) {
        all.push_back("biases of queries and keys");
      }
      if (has_bias(gains(layer), layer)) all.push_back("bias of the norm");
    }
    return listed(all);
  }

  /// The heads that have a subspace; the others are added to `deficient`.
  HeadLayer read_layer(int number, std::vector<DeficientHead>& deficient) {
    refuse_norms_of_heads(number);
    Projections w = projections(number);
    fold_gains(w, number);
    const auto count = static_cast<std::size_t>(import_.counts.heads);
    const auto k = static_cast<int>(w.query.cols() / import_.counts.heads);
    std::vector<HeadLayer> heads(count);  // of one head each
    std::vector<int> ranks(count);
    parallel_for(count, threads_, [&](std::size_t h) { ranks[h] = read_head(w, h, heads[h]); });
    HeadLayer layer;
    layer.number = number;
    for (std::size_t h = 0; h < count; ++h) {
      const auto head = static_cast<int>(h);
      if (ranks[h] < k) {
        deficient.push_back({.layer = number, .head = head, .rank = ranks[h]});
        continue;
      }
      layer.heads.push_back(head);
      append_heads(layer, std::move(heads[h]));
    }
    if (layer.heads.size() == count) layer.heads.clear();
    return layer;
  }

  /// Models that resemble this family but normalise each query and key on its own.
  void refuse_norms_of_heads(int number) {
    if (!names_.query_norm.empty()) return;
    const auto name = find({"layers.#.self_attn.q_norm.weight"}, number);
    if (names_.rotary && name) {
      fail(*name, "has tensor " + *name + ": heads of " + names_.name +
                      " do not normalise their queries - is it of another architecture?");
    }
  }

  /// Fills `one` with head h and returns the rank of its keys; below k, `one` stays empty.
  int read_head(const Projections& w, std::size_t h, HeadLayer& one) const {
    if (import_.stop && import_.stop()) throw Stopped();
    const auto head = static_cast<Index>(h);
    const Index k = w.query.cols() / import_.counts.heads;
    const Index group = head * import_.counts.kv_heads / import_.counts.heads;
    return add_projected_head(one, w.query.middleCols(head * k, k), w.key.middleCols(group * k, k),
                              names_.rotary);
  }

  ModelCheckpoint file_;
  const HeadImport& import_;
  const Architecture& names_;
  const int threads_;
  bool biases_ = false;  ///< weights have a row of them
};

}  // namespace

HeadFile import_heads(const std::string& path, const HeadImport& import, int threads) {
  return Importer(path, import, threads).import();
}

}  // namespace headlab
