// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/model_config.h"

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/models/architectures.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

class ModelConfigs : public FolderTest {
 protected:
  ModelConfig read(const std::string& text, const Architecture* architecture = nullptr) const {
    write("config.json", text);
    return read_model_config(at("config.json"), architecture);
  }
  /// The refusal without the path it begins with.
  std::string refusal(const std::string& text, const char* architecture = nullptr) const {
    const std::string line = refusal_here(
        [&] { read(text, architecture == nullptr ? nullptr : &find_architecture(architecture)); });
    const std::string name = "config.json: ";
    return line.starts_with(name) ? line.substr(name.size()) : line;
  }
};

/// Of every family, whatever it calls its numbers.
TEST_F(ModelConfigs, TheWidthOfAHeadFollowsFromTheConfiguration) {
  for (const Architecture& one : architectures()) {
    const auto counts = [&](const std::string& more) {
      const std::string temperature = one.scaled_by + one.multiplier;
      return read("{\"" + one.heads + "\": 4, \"" + one.hidden + "\": 64" + more +
                      (temperature.empty() ? "" : ", \"" + temperature + "\": 4") + "}",
                  &one)
          .counts;
    };
    EXPECT_EQ(counts("").dimensions, 64) << one.name;
    EXPECT_EQ(counts("").head_dim, one.usual_head_dim > 0 ? one.usual_head_dim : 16) << one.name;
    if (one.head_dim.empty()) continue;
    EXPECT_EQ(counts(", \"" + one.head_dim + "\": 32").head_dim, 32) << one.name;
  }
  EXPECT_EQ(refusal(R"({"n_head": 3, "n_embd": 64})", "gpt2"),
            "n_embd: is 64, which the 3 heads do not divide");
}

TEST_F(ModelConfigs, TheArchitectureComesFromTheConfiguration) {
  const auto family = [&](const std::string& type) {
    return read(
               R"({"model_type": ")" + type +
               R"(", "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "attention_multiplier": 1,
                    "query_pre_attn_scalar": 4})")
        .architecture->name;
  };
  for (const Architecture& one : architectures()) {
    for (const std::string& type : one.model_types()) EXPECT_EQ(family(type), one.name);
  }
  EXPECT_EQ(
      refusal("{}"),
      "model_type: is missing - say by --arch which names the tensors have (allowed: bert, "
      "bloom, distilbert, falcon, gemma, gemma2, gemma3, glm4, gpt2, gpt_neox, gpt_oss, granite, "
      "llama, olmo2, opt, phi, phi3, qwen2, qwen3, roberta, smollm3, stablelm, starcoder2, vit)");
  EXPECT_EQ(
      refusal(R"({"model_type": "gemma9"})"),
      "model_type: is \"gemma9\" (allowed: bert, bloom, camembert, deit, distilbert, falcon, "
      "gemma, gemma2, gemma3, gemma3_text, glm4, gpt2, gpt_neox, gpt_oss, granite, llama, "
      "mistral, mixtral, olmo2, opt, phi, phi3, qwen2, qwen2_5_vl_text, "
      "qwen2_moe, qwen2_vl_text, qwen3, qwen3_moe, roberta, "
      "smollm3, stablelm, starcoder2, vit, xlm-roberta) - did you mean \"gemma\"? - other models "
      "compute attention in other ways: name their tensors with --query and --key");
  EXPECT_EQ(refusal(R"({"model_type": 7})").substr(0, 16), "model_type: is 7");
}

TEST_F(ModelConfigs, TemperaturesComeFromTheConfiguration) {
  const auto with_heads = [](const std::string& text) {
    return R"({"num_attention_heads": 4, )" + text + "}";
  };
  const auto counts = [&](const std::string& text) { return read(with_heads(text)).counts; };
  const auto refused = [&](const std::string& text) { return refusal(with_heads(text)); };
  EXPECT_EQ(counts(R"("model_type": "llama")").temperature, std::nullopt);
  EXPECT_EQ(counts(R"("model_type": "gemma2", "query_pre_attn_scalar": 256)").temperature, 16);
  EXPECT_EQ(counts(R"("model_type": "granite", "attention_multiplier": 0.125)").temperature, 8);
  EXPECT_EQ(refused(R"("model_type": "gemma2")"), "query_pre_attn_scalar: is missing");
  EXPECT_EQ(refused(R"("model_type": "granite", "attention_multiplier": -1)"),
            "attention_multiplier: is -1, needs a number above 0");

  const auto factor = [&](const std::string& scaling) {
    return counts(R"("model_type": "llama", "max_position_embeddings": 64, )" + scaling)
        .rotary_factor;
  };
  EXPECT_EQ(factor(R"("rope_scaling": null)"), 1);
  EXPECT_EQ(factor(R"("rope_scaling": {"rope_type": "linear", "factor": 4})"), 1);
  const double yarn = 0.1 * std::log(4.0) + 1;
  EXPECT_DOUBLE_EQ(factor(R"("rope_scaling": {"type": "yarn", "factor": 4})"), yarn);
  EXPECT_DOUBLE_EQ(factor(R"("rope_parameters": {"rope_type": "yarn", "factor": 4})"), yarn);
  EXPECT_EQ(factor(R"("rope_scaling": {"type": "yarn", "factor": 4, "attention_factor": 1.5})"),
            1.5);
  EXPECT_DOUBLE_EQ(
      factor(
          R"("rope_scaling": {"type": "yarn", "factor": 4, "mscale": 0.5, "mscale_all_dim": 2})"),
      (0.05 * std::log(4.0) + 1) / (0.2 * std::log(4.0) + 1));
  EXPECT_DOUBLE_EQ(
      factor(R"("original_max_position_embeddings": 16, "rope_scaling": {"type": "longrope"})"),
      std::sqrt(1 + std::log(4.0) / std::log(16.0)));
  EXPECT_EQ(refused(R"("model_type": "phi", "partial_rotary_factor": 0.5,
                       "rope_scaling": {"type": "yarn", "factor": 4})"),
            "rope_scaling: multiplies a part of each query and key, which no temperature does");
  EXPECT_EQ(
      refused(R"("model_type": "llama", "rope_parameters": {"full_attention":
                       {"rope_type": "yarn", "factor": 4}})"),
      "rope_parameters: multiplies queries and keys of some layers alone - choose layers with "
      "--query and --key");
  EXPECT_EQ(refused(R"("model_type": "llama", "rope_scaling": {"type": "yarn"})"),
            "rope_scaling: has no factor and no attention_factor");
}

TEST_F(ModelConfigs, GroupsOfFalconComeFromItsOwnMembers) {
  const auto groups = [&](const std::string& text) {
    return read(R"({"model_type": "falcon", "num_attention_heads": 8)" + text + "}")
        .counts.kv_heads;
  };
  EXPECT_EQ(groups(""), 1);
  EXPECT_EQ(groups(R"(, "multi_query": true)"), 1);
  EXPECT_EQ(groups(R"(, "multi_query": false)"), 8);
  EXPECT_EQ(groups(R"(, "new_decoder_architecture": true, "num_kv_heads": 2)"), 2);
}

TEST_F(ModelConfigs, ModelsOfTextAndImagesHaveATextModelInside) {
  const ModelConfig config = read(R"({"model_type": "llava", "text_config": {"model_type": "llama",
                                      "num_attention_heads": 8, "num_key_value_heads": 2}})");
  EXPECT_EQ(config.architecture->name, "llama");
  EXPECT_EQ(config.counts.kv_heads, 2);
}

TEST_F(ModelConfigs, CountsComeFromTheConfiguration) {
  using Counts = std::vector<int>;
  const auto counts_of = [&](const std::string& text, const char* architecture) {
    const HeadCounts counts = read(text, &find_architecture(architecture)).counts;
    return Counts{counts.heads, counts.kv_heads, counts.layers.value_or(-1)};
  };
  EXPECT_EQ(
      counts_of(R"({"model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 6})",
                "bert"),
      (Counts{12, 12, 6}));
  EXPECT_EQ(counts_of(R"({"n_head": 25, "n_layer": 48, "num_key_value_heads": 5})", "gpt2"),
            (Counts{25, 25, 48}));
  EXPECT_EQ(counts_of(R"({"model_type": "mistral", "num_attention_heads": 32,
                     "num_key_value_heads": 8})",
                      "llama"),
            (Counts{32, 8, -1}));
  EXPECT_EQ(counts_of(R"({"num_attention_heads": 32, "num_key_value_heads": null})", "llama"),
            (Counts{32, 32, -1}));
  EXPECT_EQ(counts_of(R"({"model_type": "llama", "num_attention_heads": 32, "name": "NaN\"Infinity",
                     "limit": [0.0, Infinity, -Infinity, NaN]})",
                      "llama"),
            (Counts{32, 32, -1}));

  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"bert", "[]", "is not a JSON object"},
      {"bert", "{\"a\": NaN, \"b\": [Infinity,\n -Infinity, NaN, x]}",
       "is not JSON from line 2, column 18 on"},
      {"bert", "{\"\u00e9\": 1, }", "is not JSON from line 1, column 10 on"},
      {"bert", "{}", "num_attention_heads: is missing"},
      {"bert", R"({"num_attention_heads": 4, NaN: 1})", "is not JSON from line 1, column 28 on"},
      {"bert", R"({"num_attention_heads": Infinity})",
       "num_attention_heads: is \"Infinity\", needs a whole number from 1 to 1024"},
      {"llama", R"({"num_attention_heads": 4, "hidden_size": -Infinity})",
       "hidden_size: is \"-Infinity\", needs a whole number from 1 to 65536"},
      {"llama", R"({"num_attention_heads": 4, "rope_scaling": {"type": "yarn", "factor": NaN}})",
       "factor: is \"NaN\", needs a number above 0"},
      {"gpt2", R"({"n_head": 4, "pruned_heads": {"0": [1, 2]}})",
       "pruned_heads: is not empty: layers have fewer heads than this file says"},
      {"gpt2", R"({"num_attention_heads": 12})", "n_head: is missing"},
      {"bert", R"({"num_attention_heads": 0})",
       "num_attention_heads: is 0, needs a whole number from 1 to 1024"},
      {"bert", R"({"num_attention_heads": 12.5})",
       "num_attention_heads: is 12.5, needs a whole number from 1 to 1024"},
      {"bert", R"({"num_attention_heads": "12"})",
       "num_attention_heads: is \"12\", needs a whole number from 1 to 1024"},
      {"bert", R"({"num_attention_heads": 18446744073709551615})",
       "num_attention_heads: is 18446744073709551615, needs a whole number from 1 to 1024"},
      {"bert", R"({"num_attention_heads": 12, "num_hidden_layers": -1})",
       "num_hidden_layers: is -1, needs a whole number from 1 to 4096"},
      {"gpt2", R"({"n_head": 12, "scale_attn_weights": false})",
       "scale_attn_weights: is false (allowed: true) - the temperature is taken to be sqrt(k)"},
      {"gpt2", R"({"n_head": 12, "scale_attn_by_inverse_layer_idx": true})",
       "scale_attn_by_inverse_layer_idx: is true (allowed: false) - the temperature is taken to be "
       "sqrt(k)"},
      {"bert", R"({"num_attention_heads": 12, "position_embedding_type": "relative_key"})",
       "position_embedding_type: is \"relative_key\" (allowed: \"absolute\") - other positions add "
       "to the logits what no projection does"},
  };
  for (const auto& [architecture, text, line] : cases) {
    EXPECT_EQ(refusal(text, architecture), line) << text;
  }
  EXPECT_EQ(refusal("{\"[\\\"[\": [],\n \"a\": " + std::string(100000, '['), "bert"),
            "is not JSON of at most 100 levels from line 2, column 106 on");
}

}  // namespace
}  // namespace headlab
