// SPDX-License-Identifier: Apache-2.0
#include "engine/files/import_heads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <Eigen/Core>
#include <nlohmann/json.hpp>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/npy_file.h"
#include "engine/files/safetensors.h"
#include "engine/files/table_file.h"
#include "engine/files/words.h"
#include "kernels/decompositions.h"
#include "kernels/parallel_for.h"

namespace headlab {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Json = nlohmann::json;

constexpr std::size_t max_config_bytes = std::size_t{16} << 20;
constexpr int max_checkpoint_heads = 1024;
constexpr int max_layers = 4096;
/// The width of a model; with it no product of lengths overflows.
constexpr std::uint64_t max_model_dimensions = 1 << 16;

/// How a family names its tensors, N the number of the layer.
struct Names {
  const char* name;
  std::vector<std::string> prefixes;     ///< of all tensors: one of these
  std::string query;                     ///< N is put in place of '#'
  std::string key;                       ///< the same as `query` where one tensor holds both
  std::vector<std::string> gains;        ///< of the norm in front of a layer: one of these
  std::vector<std::string> first_gains;  ///< of the norm in front of layer 0
  bool input_first = false;              ///< weights are [in, out] and not [out, in]
  bool rotary = false;
  /// What config.json calls things.
  std::vector<std::string> model_types;
  std::string heads, kv_heads, layers;
};

Names names_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::bert:
      return {.name = "bert",
              .prefixes = {"bert.", ""},
              .query = "encoder.layer.#.attention.self.query.weight",
              .key = "encoder.layer.#.attention.self.key.weight",
              // Layer # sees what the norm at the end of layer # - 1 put out. Older checkpoints
              // call its gain gamma.
              .gains = {"encoder.layer.@.output.LayerNorm.weight",
                        "encoder.layer.@.output.LayerNorm.gamma"},
              .first_gains = {"embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"},
              .model_types = {"bert"},
              .heads = "num_attention_heads",
              .kv_heads = "",
              .layers = "num_hidden_layers"};
    case Architecture::gpt2:
      return {.name = "gpt2",
              .prefixes = {"transformer.", ""},
              .query = "h.#.attn.c_attn.weight",
              .key = "h.#.attn.c_attn.weight",
              .gains = {"h.#.ln_1.weight"},
              .first_gains = {"h.#.ln_1.weight"},
              .input_first = true,
              .model_types = {"gpt2"},
              .heads = "n_head",
              .kv_heads = "",
              .layers = "n_layer"};
    case Architecture::llama:
      break;
  }
  return {.name = "llama",
          .prefixes = {"model.", ""},
          .query = "layers.#.self_attn.q_proj.weight",
          .key = "layers.#.self_attn.k_proj.weight",
          .gains = {"layers.#.input_layernorm.weight"},
          .first_gains = {"layers.#.input_layernorm.weight"},
          .rotary = true,
          .model_types = {"llama", "mistral"},
          .heads = "num_attention_heads",
          .kv_heads = "num_key_value_heads",
          .layers = "num_hidden_layers"};
}

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
      : file_(path), import_(import), names_(names_of(import.architecture)), threads_(threads) {}

  HeadFile import() {
    const auto& [heads, kv_heads, count] = import_.counts;
    if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) {
      throw InvalidInput("--kv-heads: " + std::to_string(kv_heads) + " does not divide the " +
                         std::to_string(heads) + " heads into groups");
    }
    HeadFile out;
    for (const int layer : layers()) out.layers.push_back(read_layer(layer));
    out.temperature = std::sqrt(static_cast<double>(out.k()));
    out.rotary = names_.rotary;
    out.architecture = names_.name;
    out.origin = file_.source();
    out.kv_heads = import_.counts.kv_heads;
    return out;
  }

 private:
  /// A weight as a matrix [in][out], so that a token x becomes matrix^T x.
  struct Projections {
    MatrixXd query;  ///< [d][H k]
    MatrixXd key;    ///< [d][G k]
  };

  [[noreturn]] void fail(const std::string& problem) const {
    reject({file_.source()}, "", problem);
  }

  bool has(const std::string& name) const { return file_.tensors().contains(name); }

  /// The full name of the first of these tensors that is there.
  std::optional<std::string> find(const std::vector<std::string>& patterns, int layer) const {
    for (const std::string& prefix : names_.prefixes) {
      for (const std::string& pattern : patterns) {
        const std::string name = prefix + numbered(pattern, layer);
        if (has(name)) return name;
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
    } else {
      problem += " - is it of another architecture than " + std::string(names_.name) +
                 ", or one of several files?";
    }
    fail(problem);
  }

  int contiguous_layers() const {
    int count = 0;
    while (count < max_layers && find({names_.query}, count)) ++count;
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
    const auto& shape = file_.tensors().at(name).shape;
    if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > 3 * max_model_dimensions ||
        shape[1] > 3 * max_model_dimensions) {
      fail("tensor " + name + " is " + shape_text(shape) + ", needs two axes of usual lengths");
    }
    const std::vector<double> numbers = file_.read(name);
    using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const ByRows> rows(numbers.data(), static_cast<Index>(shape[0]),
                                        static_cast<Index>(shape[1]));
    return names_.input_first ? MatrixXd(rows) : MatrixXd(rows.transpose());
  }

  Projections projections(int layer) {
    const std::string query = need({names_.query}, layer);
    const std::string key = need({names_.key}, layer);
    Projections out{.query = matrix(query), .key = {}};
    if (query == key) {
      const Index d = out.query.rows();
      if (out.query.cols() != 3 * d) {
        fail("tensor " + query + " is " + std::to_string(d) + " x " +
             std::to_string(out.query.cols()) + ", needs d x 3 d");
      }
      out.key = out.query.middleCols(d, d);
      out.query = out.query.leftCols(d).eval();
    } else {
      out.key = matrix(key);
    }
    const auto [heads, kv_heads, count] = import_.counts;
    const Index k = out.query.cols() / heads;
    if (out.key.rows() != out.query.rows() || k * heads != out.query.cols() ||
        k * kv_heads != out.key.cols() || k > out.query.rows()) {
      fail("tensors " + query + " and " + key + " project " + std::to_string(out.query.rows()) +
           " and " + std::to_string(out.key.rows()) + " dimensions to " +
           std::to_string(out.query.cols()) + " and " + std::to_string(out.key.cols()) +
           ", which is not H k and G k for H = " + std::to_string(heads) + " heads and G = " +
           std::to_string(kv_heads) + " of keys - are --heads and --kv-heads right?");
    }
    return out;
  }

  VectorXd gain(int layer, Index d) {
    const std::string name = need(layer == 0 ? names_.first_gains : names_.gains, layer);
    const auto& shape = file_.tensors().at(name).shape;
    if (shape != std::vector<std::uint64_t>{static_cast<std::uint64_t>(d)}) {
      fail("tensor " + name + " is " + shape_text(shape) + ", needs " + std::to_string(d));
    }
    const std::vector<double> numbers = file_.read(name);
    return Eigen::Map<const VectorXd>(numbers.data(), d);
  }

  HeadLayer read_layer(int number) {
    refuse_norms_of_heads(number);
    Projections w = projections(number);
    const VectorXd g = gain(number, w.query.rows());
    w.query = g.asDiagonal() * w.query;
    w.key = g.asDiagonal() * w.key;
    const auto heads = static_cast<std::size_t>(import_.counts.heads);
    HeadLayer layer;
    layer.number = number;
    layer.subspaces.resize(heads);
    layer.w_q.resize(heads);
    layer.w_k.resize(heads);
    layer.condition_numbers.resize(heads);
    if (!names_.rotary) {
      layer.query_subspaces.resize(heads);
      layer.singular_values.resize(heads);
    }
    parallel_for(heads, threads_, [&](std::size_t h) { fill_head(w, h, layer); });
    return layer;
  }

  /// Models that resemble this family but normalise each query and key on its own: nothing linear
  /// stands for such a head.
  void refuse_norms_of_heads(int number) const {
    const auto name = find({"layers.#.self_attn.q_norm.weight"}, number);
    if (names_.rotary && name) {
      fail("has tensor " + *name + ": heads that normalise their queries are not projections");
    }
  }

  void fill_head(const Projections& w, std::size_t h, HeadLayer& layer) const {
    const auto head = static_cast<Index>(h);
    const Index k = w.query.cols() / import_.counts.heads;
    const Index group = head * import_.counts.kv_heads / import_.counts.heads;
    layer.w_q[h] = w.query.middleCols(head * k, k);
    layer.w_k[h] = w.key.middleCols(group * k, k);
    const MatrixXd r_key = HouseholderQr(layer.w_k[h]).upper();
    const VectorXd s = singular_values(r_key);
    const double rounding =
        static_cast<double>(w.key.rows()) * std::numeric_limits<double>::epsilon() * s(0);
    if (!(s(k - 1) > rounding)) {
      fail("layer " + std::to_string(layer.number) + ", head " + std::to_string(h) +
           ": keys have rank " + std::to_string((s.array() > rounding).count()) +
           ", below k = " + std::to_string(k));
    }
    layer.condition_numbers[h] = s(0) / s(k - 1);
    layer.subspaces[h] = signed_qr(layer.w_k[h]).q;
    if (names_.rotary) return;
    // W_Q W_K^T = Q_Q (R_Q R_K^T) Q_K^T, so the large product is never formed.
    const HouseholderQr query(layer.w_q[h]);
    const LeftSvd product = left_svd(query.upper() * r_key.transpose());
    layer.singular_values[h] = product.values;
    MatrixXd u = MatrixXd::Zero(w.query.rows(), k);
    u.topRows(k) = product.u;
    layer.query_subspaces[h] = query.q_times(u);
  }

  SafetensorsFile file_;
  const HeadImport& import_;
  const Names names_;
  const int threads_;
};

/// Reads members of config.json.
class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& path) : config_(config), path_(path) {}

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    reject({path_}, key, problem);
  }

  std::optional<int> count(const std::string& key, int most) const {
    const auto at = config_.find(key);
    if (key.empty() || at == config_.end() || at->is_null()) return {};
    if (!at->is_number_integer() || *at < 1 || *at > most) {
      fail(key, "is " + text(*at) + ", needs a whole number from 1 to " + std::to_string(most));
    }
    return at->get<int>();
  }

  /// Refuses another value than one of those allowed.
  void require(const std::string& key, const std::vector<Json>& allowed, const char* why) const {
    const auto at = config_.find(key);
    if (at == config_.end() || std::ranges::find(allowed, *at) != allowed.end()) return;
    std::vector<std::string> words;
    for (const Json& value : allowed) words.push_back(text(value));
    fail(key, "is " + text(*at) + " (allowed: " + listed(words) + ") - " + why);
  }

 private:
  static std::string text(const Json& value) {
    return one_line(value.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
  }
  const Json& config_;
  const std::string& path_;
};

}  // namespace

const std::vector<std::pair<std::string, Architecture>>& architectures() {
  static const std::vector<std::pair<std::string, Architecture>> all = {
      {"bert", Architecture::bert}, {"gpt2", Architecture::gpt2}, {"llama", Architecture::llama}};
  return all;
}

HeadCounts read_head_counts(const std::string& path, Architecture architecture) {
  const Names names = names_of(architecture);
  const Json json = Json::parse(read_file(path, max_config_bytes), nullptr, false);
  if (!json.is_object()) reject({path}, "", "is no JSON object");
  const ConfigReader config(json, path);
  config.require("model_type", {names.model_types.begin(), names.model_types.end()},
                 "other models compute attention in other ways");
  if (architecture == Architecture::gpt2) {
    config.require("scale_attn_weights", {true}, "the temperature is taken to be sqrt(k)");
    config.require("scale_attn_by_inverse_layer_idx", {false},
                   "the temperature is taken to be sqrt(k)");
  }
  if (architecture == Architecture::bert) {
    config.require("position_embedding_type", {"absolute"},
                   "other positions add to the logits what no projection does");
  }
  const auto heads = config.count(names.heads, max_checkpoint_heads);
  if (!heads) config.fail(names.heads, "is missing");
  return {.heads = *heads,
          .kv_heads = config.count(names.kv_heads, max_checkpoint_heads).value_or(*heads),
          .layers = config.count(names.layers, max_layers)};
}

HeadFile import_heads(const std::string& path, const HeadImport& import, int threads) {
  return Importer(path, import, threads).import();
}

}  // namespace headlab
