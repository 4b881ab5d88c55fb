// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/head_cuts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine/testing/folder_test.h"
#include "engine/testing/refusal.h"

namespace headlab {
namespace {

/// Four heads of two in two groups, d = 8, two layers.
constexpr const char* small_config = R"({"model_type": "TYPE", "num_attention_heads": 4,
  "num_key_value_heads": 2, "num_hidden_layers": 2, "hidden_size": 8, "rope_theta": 10000.0})";
/// Rows and columns; 0: an axis alone.
using Tensors = std::vector<std::pair<std::string, std::pair<int, int>>>;

class HeadCuts : public FolderTest {
 protected:
  std::string model(const std::string& type, const Tensors& of_layer) {
    const std::string folder = at("model");
    std::filesystem::create_directories(folder);
    std::string text = small_config;
    text.replace(text.find("TYPE"), 4, type);
    std::ofstream(folder + "/config.json") << text;
    std::string header;
    std::size_t at = 0;
    for (const char* layer : {"model.layers.0.self_attn.", "model.layers.1.self_attn."}) {
      for (const auto& [name, shape] : of_layer) {
        const auto [rows, columns] = shape;
        const std::size_t size = static_cast<std::size_t>(rows * std::max(columns, 1));
        header += (header.empty() ? "{\"" : ",\"") + (layer + name) +
                  R"(":{"dtype":"U8","shape":[)" + std::to_string(rows) +
                  (columns > 0 ? "," + std::to_string(columns) : "") + R"(],"data_offsets":[)" +
                  std::to_string(at) + "," + std::to_string(at + size) + "]}";
        at += size;
      }
    }
    header += "}";
    const std::uint64_t length = header.size();
    std::ofstream(folder + "/model.safetensors", std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
               std::string(at, '\1');
    return folder;
  }

  CheckpointChanges cut(const std::string& type, const Tensors& tensors,
                        const HeadsOfLayers& removed) {
    CheckpointChanges changes;
    cut_heads(model(type, tensors), removed, changes);
    return changes;
  }
  std::string refused(const std::string& type, const Tensors& tensors,
                      const HeadsOfLayers& removed) {
    return refusal_here([&] { cut(type, tensors, removed); });
  }
};

const Tensors separate = {{"q_proj.weight", {8, 8}}, {"q_proj.bias", {8, 0}},
                          {"k_proj.weight", {4, 8}}, {"v_proj.weight", {4, 8}},
                          {"o_proj.weight", {8, 8}}, {"o_proj.bias", {8, 0}}};

/// The parts of a tensor that stay, as "0+2 4+2", of layer 1.
std::string parts(const CheckpointChanges& changes, const std::string& name) {
  std::string text;
  for (const TensorCut& one : changes.cuts) {
    if (one.name != "model.layers.1.self_attn." + name) continue;
    text += std::to_string(one.axis) + ":";
    for (const AxisPart& part : one.kept) {
      text += " " + std::to_string(part.first) + "+" + std::to_string(part.count);
    }
  }
  return text;
}

TEST_F(HeadCuts, TakeRowsOfQueriesAndColumnsOfOutputs) {
  // A head of each group: keys and values stay.
  const auto one = cut("qwen2", separate, {{0, {0, 2}}, {1, {1, 2}}});
  EXPECT_EQ(parts(one, "q_proj.weight"), "0: 0+2 6+2");
  EXPECT_EQ(parts(one, "q_proj.bias"), "0: 0+2 6+2");
  EXPECT_EQ(parts(one, "k_proj.weight"), "0: 0+2 2+2");
  EXPECT_EQ(parts(one, "o_proj.weight"), "1: 0+2 6+2");
  EXPECT_EQ(parts(one, "o_proj.bias"), "");
  EXPECT_NE(one.config.find("\"num_attention_heads\": 2,"), std::string::npos) << one.config;
  EXPECT_NE(one.config.find("\"num_key_value_heads\": 2,"), std::string::npos);
  EXPECT_NE(one.config.find("\"head_dim\": 2"), std::string::npos);
  EXPECT_NE(one.config.find("\"rope_theta\": 10000.0"), std::string::npos);
  // A whole group.
  const auto group = cut("qwen2", separate, {{0, {2, 3}}, {1, {0, 1}}});
  EXPECT_EQ(parts(group, "q_proj.weight"), "0: 4+2 6+2");
  EXPECT_EQ(parts(group, "v_proj.weight"), "0: 2+2");
  EXPECT_NE(group.config.find("\"num_key_value_heads\": 1,"), std::string::npos);
}

TEST_F(HeadCuts, FindQueriesKeysAndValuesOfOneTensor) {
  const auto found = cut("phi3", {{"qkv_proj.weight", {16, 8}}, {"o_proj.weight", {8, 8}}},
                         {{0, {2, 3}}, {1, {0, 1}}});
  EXPECT_EQ(parts(found, "qkv_proj.weight"), "0: 4+2 6+2 10+2 14+2");
}

TEST_F(HeadCuts, TakeSinksAndLeaveNormsOfSingleHeads) {
  Tensors more = separate;
  more.emplace_back("sinks", std::pair(4, 0));
  EXPECT_EQ(parts(cut("gpt_oss", more, {{0, {0, 1}}, {1, {0, 1}}}), "sinks"), "0: 2+1 3+1");
  more.back() = {"q_norm.weight", {2, 0}};
  EXPECT_EQ(parts(cut("qwen3", more, {{0, {0, 1}}, {1, {0, 1}}}), "q_norm.weight"), "");
}

TEST_F(HeadCuts, NeedAsManyHeadsInEveryLayer) {
  EXPECT_EQ(refused("qwen2", separate, {{1, {0, 1}}}),
            "model: layer 1 keeps 2 heads in 1 group, layer 0 keeps 4 heads in 2 groups: all "
            "layers have to keep as many, or the shapes of tensors stay");
  EXPECT_EQ(refused("qwen2", separate, {{0, {0}}, {1, {0}}}),
            "model: layer 0 keeps 1 head of group 0, 2 of another: groups that stay have to keep "
            "as many, or the shapes of tensors stay");
  EXPECT_EQ(refused("qwen2", separate, {{0, {0, 1, 2, 3}}}), "model: layer 0 keeps no head");
}

TEST_F(HeadCuts, NeedTensorsThatAreKnown) {
  const HeadsOfLayers half = {{0, {0, 2}}, {1, {0, 2}}};
  EXPECT_EQ(refused("stablelm", separate, half),
            "model: models of type stablelm have no size of a head of their own in config.json: "
            "heads cannot be cut");
  Tensors more = separate;
  more.emplace_back("q_norm.weight", std::pair(8, 0));
  EXPECT_EQ(refused("olmo2", more, half),
            "model: tensor model.layers.0.self_attn.q_norm.weight is a norm over all heads: heads "
            "cannot be cut");
  more.back().first = "slopes";
  EXPECT_EQ(refused("qwen2", more, half),
            "model: has tensor model.layers.0.self_attn.slopes, which models of type qwen2 lack: "
            "heads cannot be cut");
  Tensors wide = separate;
  wide[2].second = {8, 8};
  EXPECT_EQ(refused("qwen2", wide, half),
            "model: tensor model.layers.0.self_attn.k_proj.weight has shape 8 x 8: its axis 0 "
            "needs 4");
}

TEST_F(HeadCuts, NeedAConfigThatIsJson) {
  const std::string folder = model("qwen2", separate);
  std::string text = small_config;
  text.replace(text.find("TYPE"), 4, "qwen2");
  const auto with_base = [&](const std::string& base) {
    std::string other = text;
    other.replace(other.find("10000.0"), 7, base);
    std::ofstream(folder + "/config.json") << other;
    CheckpointChanges changes;
    return refusal_here([&] { cut_heads(folder, {{0, {0, 2}}, {1, {0, 2}}}, changes); });
  };
  EXPECT_EQ(with_base("NaN"),
            "model/config.json: is not JSON from line 2, column 85 on: heads cannot be cut");
  EXPECT_EQ(with_base("1,"), "model/config.json: is not JSON from line 2, column 87 on");
  EXPECT_EQ(with_base("1"), "accepted");
}

TEST_F(HeadCuts, LeaveAModelThatTransformersOpens) {
  const Tensors three = {{"q_proj.weight", {8, 8}},
                         {"k_proj.weight", {8, 8}},
                         {"v_proj.weight", {8, 8}},
                         {"o_proj.weight", {8, 8}}};
  const auto of = [&](const std::string& type) {
    const std::string folder = model(type, three);
    std::string text = small_config;
    text.replace(text.find("TYPE"), 4, type);
    text.replace(text.find("\"num_key_value_heads\": 2"), 24, "\"num_key_value_heads\": 4");
    std::ofstream(folder + "/config.json") << text;
    CheckpointChanges changes;
    return refusal_here([&] { cut_heads(folder, {{0, {0}}, {1, {3}}}, changes); });
  };
  EXPECT_EQ(of("llama"),
            "model: would have 3 heads, which do not divide its hidden_size of 8: transformers "
            "opens no such model of type llama");
  EXPECT_EQ(of("mistral"), "accepted");
}

}  // namespace
}  // namespace headlab
