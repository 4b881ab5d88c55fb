// SPDX-License-Identifier: Apache-2.0
#include "engine/files/import_heads.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <unistd.h>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/testing/small_checkpoint.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Eigen::MatrixXd;

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("headlab_checkpoint_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    path_ = (folder_ / "c.safetensors").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const SmallCheckpoint& checkpoint) const {
    std::ofstream(path_, std::ios::binary) << checkpoint.bytes();
  }
  HeadFile import(const SmallCheckpoint& checkpoint, const HeadImport& what,
                  int threads = 1) const {
    write(checkpoint);
    return import_heads(path_, what, threads);
  }
  /// The refusal without the path it begins with.
  std::string refusal(const SmallCheckpoint& checkpoint, const HeadImport& what) const {
    write(checkpoint);
    return refusal([&] { import_heads(path_, what, 2); });
  }
  std::string refusal(const std::function<void()>& action) const {
    try {
      action();
    } catch (const InvalidInput& error) {
      const std::string line = error.what();
      return line.starts_with(path_ + ": ") ? line.substr(path_.size() + 2) : line;
    }
    return "accepted";
  }
  /// What is refused of a config.json.
  std::string config_refusal(const std::string& text, Architecture architecture) const {
    std::ofstream(path_) << text;
    return refusal([&] { read_head_counts(path_, architecture); });
  }

  fs::path folder_;
  std::string path_;
};

/// A matrix from a formula for its elements.
MatrixXd matrix(int rows, int columns, const std::function<double(int, int)>& element) {
  MatrixXd w(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) w(i, j) = element(i, j);
  }
  return w;
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

constexpr HeadCounts three_heads = {.heads = 3, .kv_heads = 3, .layers = {}};

TEST_F(Checkpoint, Bert) {
  for (const std::string prefix : {"bert.", ""}) {
    for (const std::string gain : {"weight", "gamma"}) {
      const SmallCheckpoint c = small_bert(prefix, gain);
      const HeadFile file = import(c, {.counts = three_heads}, 2);
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
            return matrix(12, 4, [&](int i, int j) {
              return double(c.at(norm, size_t(i))) *
                     double(c.at(layer + ".attention.self." + name + ".weight",
                                 size_t((h * 4 + j) * 12 + i)));
            });
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
    const HeadFile file =
        import(c, {.architecture = Architecture::gpt2, .counts = three_heads, .layer = 1});
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

TEST_F(Checkpoint, LlamaSharesKeys) {
  const SmallCheckpoint c = small_llama();
  const HeadFile file = import(c, {.architecture = Architecture::llama, .counts = {6, 3, {}}});
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
      const auto weight = [&](const char* name, int head) {
        return matrix(12, 2, [&](int i, int j) {
          return double(c.at(layer + ".input_layernorm.weight", size_t(i))) *
                 double(c.at(layer + ".self_attn." + name + ".weight",
                             size_t((head * 2 + j) * 12 + i)));
        });
      };
      expect_head(heads, size_t(h), weight("q_proj", h), weight("k_proj", h / 2), true);
    }
    EXPECT_EQ(heads.subspaces[0], heads.subspaces[1]);
    EXPECT_GT(distance(heads.subspaces[1], heads.subspaces[2]), 0.1);
  }
}

TEST_F(Checkpoint, ThreadsChangeNothing) {
  const HeadImport what{.counts = three_heads};
  const HeadFile one = import(small_bert(), what, 1), three = import(small_bert(), what, 3);
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t h = 0; h < 3; ++h) {
      EXPECT_EQ(one.layers[n].subspaces[h], three.layers[n].subspaces[h]);
      EXPECT_EQ(one.layers[n].query_subspaces[h], three.layers[n].query_subspaces[h]);
    }
  }
}

TEST_F(Checkpoint, RefusesWhatDoesNotFit) {
  const HeadImport bert{.counts = three_heads};
  const HeadImport llama{.architecture = Architecture::llama, .counts = {6, 3, {}}};
  const std::string query = "bert.encoder.layer.1.attention.self.query.weight";
  const std::string key = "bert.encoder.layer.1.attention.self.key.weight";
  ASSERT_EQ(refusal(small_bert(), bert), "accepted");
  ASSERT_EQ(refusal(small_llama(), llama), "accepted");

  EXPECT_EQ(refusal(SmallCheckpoint(), bert),
            "has no tensor bert.encoder.layer.0.attention.self.query.weight - is it of another "
            "architecture than bert, or one of several files?");
  EXPECT_EQ(refusal(small_gpt2(), llama),
            "has no tensor model.layers.0.self_attn.q_proj.weight - is it of another architecture "
            "than llama, or one of several files?");
  HeadImport seventh = bert;
  seventh.layer = 7;
  EXPECT_EQ(
      refusal(small_bert(), seventh),
      "has no tensor bert.encoder.layer.7.attention.self.query.weight (layers found: 0 to 1)");
  seventh.counts.layers = 2;
  EXPECT_EQ(refusal(small_bert(), seventh), "has no layer 7: the model has layers 0 to 1");
  HeadImport of_three = bert;
  of_three.counts.layers = 3;
  EXPECT_EQ(
      refusal(small_bert(), of_three),
      "has no tensor bert.encoder.layer.2.attention.self.query.weight (layers found: 0 to 1)");

  const std::string of_counts = " - are --heads and --kv-heads right?";
  HeadImport five = bert;
  five.counts = {5, 5, {}};
  EXPECT_EQ(refusal(small_bert(), five),
            "tensors bert.encoder.layer.0.attention.self.query.weight and "
            "bert.encoder.layer.0.attention.self.key.weight project 12 and 12 dimensions to 12 and "
            "12, which is not H k and G k for H = 5 heads and G = 5 of keys" +
                of_counts);
  HeadImport unshared = llama;
  unshared.counts = {6, 6, {}};
  EXPECT_EQ(
      refusal(small_llama(), unshared),
      "tensors model.layers.0.self_attn.q_proj.weight and "
      "model.layers.0.self_attn.k_proj.weight project 12 and 12 dimensions to 12 and 6, which "
      "is not H k and G k for H = 6 heads and G = 6 of keys" +
          of_counts);
  HeadImport ragged = llama;
  ragged.counts = {6, 4, {}};
  EXPECT_EQ(refusal(small_llama(), ragged),
            "--kv-heads: 4 does not divide the 6 heads into groups");

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
  // Head 2 of layer 1 reads the same direction twice.
  EXPECT_EQ(with([&](auto& c) {
              auto& numbers = c.tensors[key].numbers;
              for (std::size_t i = 0; i < 12; ++i) numbers[11 * 12 + i] = numbers[10 * 12 + i];
            }),
            "layer 1, head 2: keys have rank 3, below k = 4");
  EXPECT_EQ(with([&](auto& c) { std::fill_n(c.tensors[key].numbers.begin(), 48, 0.0f); }),
            "layer 1, head 0: keys have rank 0, below k = 4");

  SmallCheckpoint normed = small_llama();
  normed.add("model.layers.1.self_attn.q_norm.weight", {2}, 1, true);
  EXPECT_EQ(refusal(normed, llama),
            "has tensor model.layers.1.self_attn.q_norm.weight: heads that normalise their queries "
            "are not projections");
  SmallCheckpoint narrow;
  narrow.add("h.0.attn.c_attn.weight", {12, 24}, 1);
  EXPECT_EQ(refusal(narrow, {.architecture = Architecture::gpt2, .counts = three_heads}),
            "tensor h.0.attn.c_attn.weight is 12 x 24, needs d x 3 d");
}

TEST_F(Checkpoint, CountsComeFromTheConfiguration) {
  const auto read = [&](const std::string& text, Architecture architecture) {
    std::ofstream(path_) << text;
    const HeadCounts counts = read_head_counts(path_, architecture);
    return std::vector<int>{counts.heads, counts.kv_heads, counts.layers.value_or(-1)};
  };
  using Counts = std::vector<int>;
  EXPECT_EQ(read(R"({"model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 6})",
                 Architecture::bert),
            (Counts{12, 12, 6}));
  EXPECT_EQ(read(R"({"n_head": 25, "n_layer": 48, "num_key_value_heads": 5})", Architecture::gpt2),
            (Counts{25, 25, 48}));
  EXPECT_EQ(read(R"({"model_type": "mistral", "num_attention_heads": 32,
                     "num_key_value_heads": 8})",
                 Architecture::llama),
            (Counts{32, 8, -1}));
  EXPECT_EQ(
      read(R"({"num_attention_heads": 32, "num_key_value_heads": null})", Architecture::llama),
      (Counts{32, 32, -1}));

  const std::tuple<Architecture, const char*, const char*> cases[] = {
      {Architecture::bert, "", "is no JSON object"},
      {Architecture::bert, "[]", "is no JSON object"},
      {Architecture::bert, "{", "is no JSON object"},
      {Architecture::bert, "{}", "num_attention_heads: is missing"},
      {Architecture::gpt2, R"({"num_attention_heads": 12})", "n_head: is missing"},
      {Architecture::bert, R"({"num_attention_heads": 0})",
       "num_attention_heads: is 0, needs a whole number from 1 to 1024"},
      {Architecture::bert, R"({"num_attention_heads": 12.5})",
       "num_attention_heads: is 12.5, needs a whole number from 1 to 1024"},
      {Architecture::bert, R"({"num_attention_heads": "12"})",
       "num_attention_heads: is \"12\", needs a whole number from 1 to 1024"},
      {Architecture::bert, R"({"num_attention_heads": 18446744073709551615})",
       "num_attention_heads: is 18446744073709551615, needs a whole number from 1 to 1024"},
      {Architecture::bert, R"({"num_attention_heads": 12, "num_hidden_layers": -1})",
       "num_hidden_layers: is -1, needs a whole number from 1 to 4096"},
      {Architecture::llama, R"({"model_type": "gemma", "num_attention_heads": 8})",
       "model_type: is \"gemma\" (allowed: \"llama\", \"mistral\") - other models compute "
       "attention "
       "in other ways"},
      {Architecture::gpt2, R"({"n_head": 12, "scale_attn_weights": false})",
       "scale_attn_weights: is false (allowed: true) - the temperature is taken to be sqrt(k)"},
      {Architecture::gpt2, R"({"n_head": 12, "scale_attn_by_inverse_layer_idx": true})",
       "scale_attn_by_inverse_layer_idx: is true (allowed: false) - the temperature is taken to be "
       "sqrt(k)"},
      {Architecture::bert,
       R"({"num_attention_heads": 12, "position_embedding_type": "relative_key"})",
       "position_embedding_type: is \"relative_key\" (allowed: \"absolute\") - other positions add "
       "to the logits what no projection does"},
  };
  for (const auto& [architecture, text, line] : cases) {
    EXPECT_EQ(config_refusal(text, architecture), line) << text;
  }
  EXPECT_EQ(config_refusal(std::string(100000, '['), Architecture::bert), "is no JSON object");
}

}  // namespace
}  // namespace headlab
