// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/import_heads.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "engine/testing/folder_test.h"
#include "engine/testing/small_checkpoint.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

class Checkpoint : public FolderTest {
 protected:
  HeadFile import(const SmallCheckpoint& checkpoint, const HeadImport& what,
                  int threads = 1) const {
    write("c.safetensors", checkpoint.bytes());
    return import_heads(at("c.safetensors"), what, threads);
  }
  /// The refusal without the path it begins with.
  std::string refusal(const SmallCheckpoint& checkpoint, const HeadImport& what) const {
    const std::string line = refusal_here([&] { import(checkpoint, what, 2); });
    const std::string name = "c.safetensors: ";
    return line.starts_with(name) ? line.substr(name.size()) : line;
  }
};

/// A matrix from a formula for its elements.
MatrixXd matrix(int rows, int columns, const std::function<double(int, int)>& element) {
  MatrixXd w(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) w(i, j) = element(i, j);
  }
  return w;
}

/// The weights of head h from those of all heads [out][12], with the gains of the norm.
MatrixXd folded(const SmallCheckpoint& c, const std::string& gain, const std::string& weight, int h,
                int k) {
  return matrix(12, k, [&](int i, int j) {
    return double(c.at(gain, size_t(i))) * double(c.at(weight, size_t((h * k + j) * 12 + i)));
  });
}

/// The projector to the column space, from the normal equations.
MatrixXd projector(const MatrixXd& w) {
  return w * (w.transpose() * w).inverse() * w.transpose();
}

double distance(const MatrixXd& a, const MatrixXd& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

/// The head has these weights, and everything else in the file follows from them. Single products
/// of float32 are exact, the projector is conditioned below 1e4.
void expect_head(const HeadLayer& layer, std::size_t h, const MatrixXd& w_q, const MatrixXd& w_k,
                 bool rotary = false) {
  EXPECT_EQ(layer.w_q[h], w_q);
  EXPECT_EQ(layer.w_k[h], w_k);
  const MatrixXd& v = layer.subspaces[h];
  const auto k = w_k.cols();
  EXPECT_LE(distance(v.transpose() * v, MatrixXd::Identity(k, k)), 1e-14);
  EXPECT_LE(distance(v * v.transpose(), projector(w_k)), 1e-11);
  EXPECT_GT(distance(v * v.transpose(), projector(w_q)), 1e-2);
  const Eigen::SelfAdjointEigenSolver<MatrixXd> gram(w_k.transpose() * w_k);
  EXPECT_NEAR(layer.condition_numbers[h],
              std::sqrt(gram.eigenvalues()(k - 1) / gram.eigenvalues()(0)),
              1e-9 * layer.condition_numbers[h]);
  if (rotary) return;
  const MatrixXd m = w_q * w_k.transpose();
  const MatrixXd& u = layer.query_subspaces[h];
  EXPECT_LE(distance(u.transpose() * u, MatrixXd::Identity(k, k)), 1e-14);
  EXPECT_LE(distance(u * u.transpose(), projector(w_q)), 1e-11);
  // U^T M M^T U = diag(s^2)
  const MatrixXd squares = layer.singular_values[h].array().square().matrix().asDiagonal();
  EXPECT_LE(distance(u.transpose() * m * m.transpose() * u, squares), 1e-12);
  EXPECT_GE(layer.singular_values[h](0), layer.singular_values[h](k - 1));
}

constexpr HeadCounts three_heads = {.heads = 3, .kv_heads = 3, .layers = {}, .head_dim = {}};

HeadImport of(const std::string& architecture, const HeadCounts& counts = three_heads) {
  return {.architecture = &find_architecture(architecture), .counts = counts, .layer = {}};
}

TEST_F(Checkpoint, Bert) {
  for (const std::string prefix : {"bert.", ""}) {
    for (const std::string gain : {"weight", "gamma"}) {
      const SmallCheckpoint c = small_bert(prefix, gain);
      const HeadFile file = import(c, of("bert"), 2);
      EXPECT_EQ(file.heads(), 3);
      EXPECT_EQ(file.d(), 12);
      EXPECT_EQ(file.k(), 4);
      EXPECT_EQ(file.temperature, 2);
      EXPECT_FALSE(file.rotary);
      ASSERT_EQ(file.layers.size(), 2u);
      for (int n = 0; n < 2; ++n) {
        const std::string layer = prefix + "encoder.layer." + std::to_string(n);
        // What layer 1 sees left the norm at the end of layer 0.
        const std::string norm = n == 0 ? prefix + "embeddings.LayerNorm." + gain
                                        : prefix + "encoder.layer.0.output.LayerNorm." + gain;
        for (int h = 0; h < 3; ++h) {
          const auto weight = [&](const std::string& name) {
            return folded(c, norm, layer + ".attention.self." + name + ".weight", h, 4);
          };
          expect_head(file.layers[size_t(n)], size_t(h), weight("query"), weight("key"));
        }
      }
    }
  }
}

TEST_F(Checkpoint, Gpt2) {
  for (const std::string prefix : {"transformer.", ""}) {
    const SmallCheckpoint c = small_gpt2(prefix);
    HeadImport one = of("gpt2");
    one.layer = 1;
    const HeadFile file = import(c, one);
    ASSERT_EQ(file.layers.size(), 1u);
    EXPECT_EQ(file.layers[0].number, 1);
    EXPECT_EQ(file.temperature, 2);
    for (int h = 0; h < 3; ++h) {
      const auto weight = [&](int part) {
        return matrix(12, 4, [&](int i, int j) {
          return double(c.at(prefix + "h.1.ln_1.weight", size_t(i))) *
                 double(c.at(prefix + "h.1.attn.c_attn.weight",
                             size_t(i * 36 + part * 12 + h * 4 + j)));
        });
      };
      expect_head(file.layers[0], size_t(h), weight(0), weight(1));
    }
  }
}

TEST_F(Checkpoint, ReadsThroughWhatWrapsAModel) {
  const HeadImport what = of("llama", {6, 3, {}, {}});
  const HeadFile plain = import(small_llama(), what);
  for (const char* wrapper : {"_orig_mod.", "module."}) {
    SmallCheckpoint wrapped;
    for (const auto& [name, tensor] : small_llama().tensors)
      wrapped.tensors[wrapper + name] = tensor;
    const HeadFile file = import(wrapped, what);
    ASSERT_EQ(file.layers.size(), 2u) << wrapper;
    EXPECT_EQ(file.layers[1].subspaces, plain.layers[1].subspaces) << wrapper;
  }
  SmallCheckpoint other;
  for (const auto& [name, tensor] : small_llama().tensors) other.tensors["my." + name] = tensor;
  EXPECT_TRUE(refusal(other, what).starts_with("has no tensor model.layers.0.self_attn.q_proj"));
  SmallCheckpoint adapter;
  for (const auto& [name, tensor] : small_llama().tensors) {
    adapter.tensors["base_model.model." + name] = tensor;
  }
  EXPECT_EQ(refusal(adapter, what),
            "has no tensor model.layers.0.self_attn.q_proj.weight - its names begin with "
            "base_model.model., as PEFT writes adapters: save the model with its adapter merged "
            "into it (merge_and_unload)");
}

TEST_F(Checkpoint, LlamaSharesKeys) {
  const SmallCheckpoint c = small_llama();
  const HeadFile file = import(c, of("llama", {6, 3, {}, {}}));
  ASSERT_EQ(file.layers.size(), 2u);
  EXPECT_TRUE(file.rotary);
  EXPECT_EQ(file.kv_heads, 3);
  EXPECT_EQ(file.temperature, std::sqrt(2.0));
  for (int n = 0; n < 2; ++n) {
    const std::string layer = "model.layers." + std::to_string(n);
    const HeadLayer& heads = file.layers[size_t(n)];
    EXPECT_TRUE(heads.query_subspaces.empty());
    EXPECT_TRUE(heads.singular_values.empty());
    for (int h = 0; h < 6; ++h) {
      const auto weight = [&](const std::string& name, int head) {
        return folded(c, layer + ".input_layernorm.weight",
                      layer + ".self_attn." + name + ".weight", head, 2);
      };
      expect_head(heads, size_t(h), weight("q_proj", h), weight("k_proj", h / 2), true);
    }
    EXPECT_EQ(heads.subspaces[0], heads.subspaces[1]);
    EXPECT_GT(distance(heads.subspaces[1], heads.subspaces[2]), 0.1);
  }
}

TEST_F(Checkpoint, ThreadsChangeNothing) {
  const HeadImport what = of("bert");
  const HeadFile one = import(small_bert(), what, 1), three = import(small_bert(), what, 3);
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t h = 0; h < 3; ++h) {
      EXPECT_EQ(one.layers[n].subspaces[h], three.layers[n].subspaces[h]);
      EXPECT_EQ(one.layers[n].query_subspaces[h], three.layers[n].query_subspaces[h]);
    }
  }
}

TEST_F(Checkpoint, RefusesWhatDoesNotFit) {
  const HeadImport bert = of("bert");
  const HeadImport llama = of("llama", {6, 3, {}, {}});
  const std::string query = "bert.encoder.layer.1.attention.self.query.weight";
  const std::string key = "bert.encoder.layer.1.attention.self.key.weight";
  ASSERT_EQ(refusal(small_bert(), bert), "accepted");
  ASSERT_EQ(refusal(small_llama(), llama), "accepted");

  HeadImport seventh = bert;
  seventh.layer = 7;
  EXPECT_EQ(refusal(small_bert(), seventh),
            "has no tensor bert.encoder.layer.7.attention.self.query.weight (layers found: 0 to 1) "
            "- choose one of them with --layer, or give the folder of all shards");
  HeadImport of_three = bert;
  of_three.counts.layers = 3;
  EXPECT_EQ(refusal(small_bert(), of_three),
            "has no tensor bert.encoder.layer.2.attention.self.query.weight (layers found: 0 to 1) "
            "- choose one of them with --layer, or give the folder of all shards");

  HeadImport unshared = llama;
  unshared.counts = {6, 6, {}, {}};
  EXPECT_EQ(
      refusal(small_llama(), unshared),
      "tensors model.layers.0.self_attn.q_proj.weight and "
      "model.layers.0.self_attn.k_proj.weight project 12 and 12 dimensions to 12 and 6, which "
      "is not H k and G k for H = 6 heads and G = 6 of keys - are --heads and --kv-heads right?");

  const auto with = [&](const std::function<void(SmallCheckpoint&)>& change) {
    SmallCheckpoint c = small_bert();
    change(c);
    return refusal(c, bert);
  };
  EXPECT_EQ(with([&](auto& c) { c.tensors.erase(key); }),
            "has no tensor " + key + " (layers found: 0 to 1)");
  EXPECT_EQ(with([&](auto& c) { c.tensors.erase("bert.embeddings.LayerNorm.weight"); }),
            "has no tensor bert.embeddings.LayerNorm.weight (layers found: 0 to 1)");
  EXPECT_EQ(with([&](auto& c) { c.tensors.erase("bert.encoder.layer.0.output.LayerNorm.weight"); }),
            "has no tensor bert.encoder.layer.0.output.LayerNorm.weight (layers found: 0 to 1)");
  EXPECT_EQ(with([&](auto& c) { c.tensors[key].shape = {144}; }),
            "tensor " + key + " is 144, needs two axes of usual lengths");
  EXPECT_EQ(with([&](auto& c) {
              c.tensors[key] = {{0, 12}, {}};
            }),
            "tensor " + key + " is 0 x 12, needs two axes of usual lengths");
  EXPECT_EQ(with([&](auto& c) {
              c.tensors["bert.embeddings.LayerNorm.weight"] = {{1}, {1.0f}};
            }),
            "tensor bert.embeddings.LayerNorm.weight is 1, needs 12");
  EXPECT_EQ(with([&](auto& c) { c.tensors[query].numbers[5] = INFINITY; }),
            "tensor \"" + query + "\" has a number that is not finite");
  SmallCheckpoint normed = small_llama();
  normed.add("model.layers.1.self_attn.q_norm.weight", {2}, 1, true);
  EXPECT_EQ(
      refusal(normed, llama),
      "has tensor model.layers.1.self_attn.q_norm.weight: heads of llama do not normalise their "
      "queries - is it of another architecture?");
  SmallCheckpoint narrow;
  narrow.add("h.0.attn.c_attn.weight", {12, 24}, 1);
  EXPECT_EQ(
      refusal(narrow, of("gpt2")),
      "tensor h.0.attn.c_attn.weight projects 12 dimensions to 24, which is not (H + 2 G) k for "
      "H = 3 heads and G = 3 of keys - are --heads and --kv-heads right?");
}

TEST_F(Checkpoint, HeadsWithoutFullRankAreLeftOut) {
  const std::string key = "bert.encoder.layer.1.attention.self.key.weight";
  const HeadFile whole = import(small_bert(), of("bert"));
  EXPECT_TRUE(whole.deficient.empty());
  EXPECT_TRUE(whole.layers[1].heads.empty());
  SmallCheckpoint c = small_bert();
  auto& numbers = c.tensors[key].numbers;
  // Head 0 of layer 1 is zero, head 2 reads the same direction twice.
  std::fill_n(numbers.begin(), 48, 0.0f);
  for (std::size_t i = 0; i < 12; ++i) numbers[11 * 12 + i] = numbers[10 * 12 + i];
  const HeadFile file = import(c, of("bert"));
  ASSERT_EQ(file.deficient.size(), 2u);
  EXPECT_EQ(file.deficient[0].layer, 1);
  EXPECT_EQ(file.deficient[0].head, 0);
  EXPECT_EQ(file.deficient[0].rank, 0);
  EXPECT_EQ(file.deficient[1].head, 2);
  EXPECT_EQ(file.deficient[1].rank, 3);
  EXPECT_EQ(file.heads(), 3);
  EXPECT_EQ(file.layers[0].subspaces.size(), 3u);
  EXPECT_EQ(file.layers[1].heads, std::vector<int>{1});
  ASSERT_EQ(file.layers[1].subspaces.size(), 1u);
  EXPECT_EQ(file.layers[1].subspaces[0], whole.layers[1].subspaces[1]);
  EXPECT_EQ(file.layers[1].query_subspaces[0], whole.layers[1].query_subspaces[1]);

  // The file has their places, and a reader leaves them out again.
  const std::string path = at("h.nc");
  write_head_file(path, file);
  const HeadFile read = read_head_file(path);
  EXPECT_EQ(read.heads(), 3);
  EXPECT_TRUE(read.layers[0].heads.empty());
  EXPECT_EQ(read.layers[0].w_q[2], whole.layers[0].w_q[2]);
  EXPECT_EQ(read.layers[1].heads, std::vector<int>{1});
  ASSERT_EQ(read.layers[1].w_k.size(), 1u);
  EXPECT_EQ(read.layers[1].w_k[0], whole.layers[1].w_k[1]);
  HeadImport one = of("bert");
  one.layer = 1;
  const std::string npy = at("h.npy");
  write_head_file(npy, import(c, one));
  EXPECT_EQ(read_head_file(npy).heads(), 1);

  // A layer without heads is left out; a model without heads is refused.
  for (auto& number : numbers) number = 0;
  EXPECT_EQ(import(c, of("bert")).layers.size(), 1u);
  EXPECT_EQ(refusal(c, one), "has no head whose keys have full rank");
}

/// Heads of every family, from small tensors under its names with the same numbers.
class Families : public Checkpoint {
 protected:
  static constexpr int d = 12, heads = 4, k = 3;

  static double number(int row, int column, std::uint32_t salt) {
    std::uint32_t state = 2654435761u * (salt + 1) + 40503u * std::uint32_t(row * 97 + column);
    for (int i = 0; i < 4; ++i) {
      state = 1664525u * (state ^ state >> 15) + 1013904223u;
    }
    return double(float(double(state >> 8) * 0x1p-23 - 1));
  }
  /// Query, key and value (part 0, 1, 2) of head h, [d][k].
  static double weight(int part, int h, int i, int j) {
    return number(i, h * k + j, std::uint32_t(part + 1));
  }
  static double gain(int i) { return number(i, 0, 9); }

  /// Rows [out] of d numbers from a list of (part, head).
  static SmallCheckpoint::Tensor stacked(const std::vector<std::pair<int, int>>& blocks) {
    SmallCheckpoint::Tensor tensor{.shape = {blocks.size() * k, d}, .numbers = {}};
    for (const auto& [part, h] : blocks) {
      for (int j = 0; j < k; ++j) {
        for (int i = 0; i < d; ++i) tensor.numbers.push_back(float(weight(part, h, i, j)));
      }
    }
    return tensor;
  }
  static std::vector<std::pair<int, int>> all_of(int part, int count) {
    std::vector<std::pair<int, int>> blocks;
    for (int h = 0; h < count; ++h) blocks.emplace_back(part, h);
    return blocks;
  }
  static SmallCheckpoint::Tensor gains() {
    SmallCheckpoint::Tensor tensor{.shape = {d}, .numbers = {}};
    for (int i = 0; i < d; ++i) tensor.numbers.push_back(float(gain(i)));
    return tensor;
  }
  static SmallCheckpoint separate(const std::string& query, const std::string& key,
                                  const std::string& norm, int groups) {
    SmallCheckpoint c;
    c.tensors[query] = stacked(all_of(0, heads));
    c.tensors[key] = stacked(all_of(1, groups));
    c.tensors[norm] = gains();
    return c;
  }
  void expect_heads(const std::string& name, const SmallCheckpoint& c, int groups,
                    double gain_offset = 0, double query_gain = 1, double key_gain = 1) const {
    SCOPED_TRACE(name);
    const HeadFile file = import(c, of(name, {heads, groups, 1, {}}));
    ASSERT_EQ(file.layers.size(), 1u);
    EXPECT_EQ(file.architecture, name);
    EXPECT_EQ(file.rotary, find_architecture(name).rotary);
    for (int h = 0; h < heads; ++h) {
      const auto wanted = [&](int part, int head, double scale) {
        return matrix(d, k, [&](int i, int j) {
          const double g = gain_offset + double(float(gain(i)));
          return g * weight(part, head, i, j) * scale;
        });
      };
      EXPECT_EQ(file.layers[0].w_q[size_t(h)], wanted(0, h, query_gain));
      EXPECT_EQ(file.layers[0].w_k[size_t(h)], wanted(1, h * groups / heads, key_gain));
      EXPECT_NE(file.layers[0].w_q[size_t(h)], file.layers[0].w_k[size_t(h)]);
    }
  }
};

TEST_F(Families, WithSeparateProjections) {
  for (const std::string name : {"roberta", "bert"}) {
    expect_heads(name,
                 separate(name + ".encoder.layer.0.attention.self.query.weight",
                          name + ".encoder.layer.0.attention.self.key.weight",
                          name + ".embeddings.LayerNorm.weight", 4),
                 4);
  }
  expect_heads("distilbert",
               separate("distilbert.transformer.layer.0.attention.q_lin.weight",
                        "distilbert.transformer.layer.0.attention.k_lin.weight",
                        "distilbert.embeddings.LayerNorm.weight", 4),
               4);
  for (const std::string prefix : {"vit.", "deit.", ""}) {
    expect_heads("vit",
                 separate(prefix + "encoder.layer.0.attention.attention.query.weight",
                          prefix + "encoder.layer.0.attention.attention.key.weight",
                          prefix + "encoder.layer.0.layernorm_before.weight", 4),
                 4);
  }
  const SmallCheckpoint llama =
      separate("model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
               "model.layers.0.input_layernorm.weight", 2);
  expect_heads("llama", llama, 2);
  expect_heads("qwen2", llama, 2);
  expect_heads("gemma", llama, 2, 1);
  SmallCheckpoint qwen3 = llama;
  qwen3.tensors["model.layers.0.self_attn.q_norm.weight"] = {{k}, {2, 2, 2}};
  qwen3.tensors["model.layers.0.self_attn.k_norm.weight"] = {{k}, {0.5f, 0.5f, 0.5f}};
  expect_heads("qwen3", qwen3, 2, 0, 2, 0.5);
  EXPECT_EQ(refusal(llama, of("qwen3", {heads, 2, 1, {}})),
            "has no tensor model.layers.0.self_attn.q_norm.weight (layers found: 0 to 0)");
}

TEST_F(Families, WithFusedProjections) {
  SmallCheckpoint phi3;
  auto blocks = all_of(0, heads);
  for (const int part : {1, 2}) {
    for (const auto& block : all_of(part, 2)) blocks.push_back(block);
  }
  phi3.tensors["model.layers.0.self_attn.qkv_proj.weight"] = stacked(blocks);
  phi3.tensors["model.layers.0.input_layernorm.weight"] = gains();
  expect_heads("phi3", phi3, 2);

  SmallCheckpoint neox;
  blocks.clear();
  for (int h = 0; h < heads; ++h) {
    for (const int part : {0, 1, 2}) blocks.emplace_back(part, h);
  }
  neox.tensors["gpt_neox.layers.0.attention.query_key_value.weight"] = stacked(blocks);
  neox.tensors["gpt_neox.layers.0.input_layernorm.weight"] = gains();
  expect_heads("gpt_neox", neox, 4);
}

TEST_F(Families, SayWhatIsLeftOut) {
  SmallCheckpoint c = small_bert();  // has a bias of keys
  EXPECT_EQ(import(c, of("bert")).left_out, "biases of queries and keys");
  c.add("bert.embeddings.LayerNorm.bias", {12}, 7);
  EXPECT_EQ(import(c, of("bert")).left_out, "biases of queries and keys, bias of the norm");
  EXPECT_EQ(import(small_gpt2(), of("gpt2")).left_out, "");
  EXPECT_EQ(import(small_llama(), of("llama", {6, 3, {}, {}})).left_out,
            "rotary positions with their scaling, sliding windows");
}

TEST_F(Families, TheDimensionOfAHeadIsThatOfTheConfiguration) {
  HeadImport what = of("llama", {6, 3, {}, 2});
  EXPECT_EQ(refusal(small_llama(), what), "accepted");
  what.counts.head_dim = 4;
  EXPECT_EQ(refusal(small_llama(), what),
            "tensor model.layers.0.self_attn.q_proj.weight has heads of dimension 2, not 4 as "
            "config.json says");
  what.counts = {.heads = 6, .kv_heads = 3, .layers = {}, .head_dim = 2, .dimensions = 24};
  EXPECT_EQ(refusal(small_llama(), what),
            "tensor model.layers.0.self_attn.q_proj.weight has tokens of dimension 12, not 24 as "
            "config.json says");
}

TEST_F(Checkpoint, BiasesAreWeightsOfAConstantCoordinate) {
  SmallCheckpoint c = small_gpt2();
  c.add("transformer.h.1.attn.c_attn.bias", {36}, 7);
  c.add("transformer.h.1.ln_1.bias", {12}, 8);
  HeadImport what = of("gpt2");
  EXPECT_FALSE(import(c, what).constant_coordinate);
  what.biases = true;
  EXPECT_FALSE(import(small_gpt2(), what).constant_coordinate);
  const HeadFile file = import(c, what);
  EXPECT_TRUE(file.constant_coordinate);
  EXPECT_EQ(file.d(), 13);
  EXPECT_EQ(file.left_out, "");
  // Layer 0 has none.
  EXPECT_EQ(file.layers[0].w_q[1].row(12).cwiseAbs().maxCoeff(), 0);
  for (int h = 0; h < 3; ++h) {
    for (int j = 0; j < 4; ++j) {
      double expected = c.at("transformer.h.1.attn.c_attn.bias", size_t(4 * h + j));
      for (int i = 0; i < 12; ++i) {
        expected += double(c.at("transformer.h.1.ln_1.bias", size_t(i))) *
                    c.at("transformer.h.1.attn.c_attn.weight", size_t(36 * i + 4 * h + j));
      }
      // Thirteen terms below 1 in float64.
      EXPECT_NEAR(file.layers[1].w_q[size_t(h)](12, j), expected, 1e-14);
    }
  }
  EXPECT_EQ(file.layers[1].w_q[0].topRows(12), import(c, of("gpt2")).layers[1].w_q[0]);
}

}  // namespace
}  // namespace headlab
