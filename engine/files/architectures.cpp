// SPDX-License-Identifier: Apache-2.0
// Source of the names: the model classes of Hugging Face Transformers 4, one per model_type.
#include "engine/files/architectures.h"

#include <algorithm>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"

namespace headlab {

namespace {

const std::string rotary_positions = "rotary positions with their scaling, sliding windows";

const ConfigRequirement absolute_positions = {
    .key = "position_embedding_type",
    .allowed = {"\"absolute\""},
    .why = "other positions add to the logits what no projection does"};

const std::string temperature_is_sqrt_k = "the temperature is taken to be sqrt(k)";

/// Names of BERT, which RoBERTa shares: layer # sees what the norm at the end of layer # - 1 put
/// out. Older checkpoints call a gain gamma.
Architecture like_bert(std::string name, std::string prefix) {
  return {.name = std::move(name),
          .also = {},
          .prefixes = {std::move(prefix), ""},
          .query = "encoder.layer.#.attention.self.query.weight",
          .key = "encoder.layer.#.attention.self.key.weight",
          .gains = {"encoder.layer.@.output.LayerNorm.weight",
                    "encoder.layer.@.output.LayerNorm.gamma"},
          .first_gains = {"embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"},
          .required = {absolute_positions}};
}

/// Names of Llama, which most decoders since share.
Architecture like_llama(std::string name) {
  return {.name = std::move(name),
          .also = {},
          .prefixes = {"model.", ""},
          .query = "layers.#.self_attn.q_proj.weight",
          .key = "layers.#.self_attn.k_proj.weight",
          .gains = {"layers.#.input_layernorm.weight"},
          .rotary = true,
          .left_out = rotary_positions,
          .kv_heads = "num_key_value_heads",
          .head_dim = "head_dim"};
}

std::vector<Architecture> make_table() {
  std::vector<Architecture> table;

  table.push_back(like_bert("bert", "bert."));

  table.push_back({.name = "distilbert",
                   .also = {},
                   .prefixes = {"distilbert.", ""},
                   .query = "transformer.layer.#.attention.q_lin.weight",
                   .key = "transformer.layer.#.attention.k_lin.weight",
                   .gains = {"transformer.layer.@.output_layer_norm.weight"},
                   .first_gains = {"embeddings.LayerNorm.weight"},
                   .heads = "n_heads",
                   .layers = "n_layers",
                   .hidden = "dim"});

  // Its RMSNorm multiplies by 1 + w.
  Architecture gemma = like_llama("gemma");
  gemma.gain_offset = 1;
  gemma.usual_head_dim = 256;
  table.push_back(gemma);

  table.push_back(
      {.name = "gpt2",
       .also = {},
       .prefixes = {"transformer.", ""},
       .query = "h.#.attn.c_attn.weight",
       .key = "h.#.attn.c_attn.weight",
       .layout = ProjectionLayout::query_key_value,
       .input_first = true,
       .gains = {"h.#.ln_1.weight"},
       .heads = "n_head",
       .layers = "n_layer",
       .hidden = "n_embd",
       .required = {{"scale_attn_weights", {"true"}, temperature_is_sqrt_k},
                    {"scale_attn_by_inverse_layer_idx", {"false"}, temperature_is_sqrt_k}}});

  table.push_back({.name = "gpt_neox",
                   .also = {},
                   .prefixes = {"gpt_neox.", ""},
                   .query = "layers.#.attention.query_key_value.weight",
                   .key = "layers.#.attention.query_key_value.weight",
                   .layout = ProjectionLayout::by_head,
                   .gains = {"layers.#.input_layernorm.weight"},
                   .rotary = true,
                   .left_out = rotary_positions});

  Architecture llama = like_llama("llama");
  llama.also = {"mistral", "mixtral"};
  table.push_back(llama);

  Architecture phi3 = like_llama("phi3");
  phi3.query = phi3.key = "layers.#.self_attn.qkv_proj.weight";
  phi3.layout = ProjectionLayout::query_key_value;
  table.push_back(phi3);

  Architecture qwen2 = like_llama("qwen2");
  qwen2.also = {"qwen2_moe"};
  table.push_back(qwen2);

  Architecture qwen3 = like_llama("qwen3");
  qwen3.also = {"qwen3_moe"};
  qwen3.query_norm = "layers.#.self_attn.q_norm.weight";
  qwen3.key_norm = "layers.#.self_attn.k_norm.weight";
  qwen3.usual_head_dim = 128;
  qwen3.left_out += ", division of each query and key by its norm (the gains are folded in)";
  table.push_back(qwen3);

  Architecture roberta = like_bert("roberta", "roberta.");
  roberta.also = {"xlm-roberta", "camembert"};
  table.push_back(roberta);

  table.push_back({.name = "vit",
                   .also = {"deit"},
                   .prefixes = {"vit.", "deit.", ""},
                   .query = "encoder.layer.#.attention.attention.query.weight",
                   .key = "encoder.layer.#.attention.attention.key.weight",
                   .gains = {"encoder.layer.#.layernorm_before.weight"}});
  return table;
}

}  // namespace

std::vector<std::string> Architecture::model_types() const {
  std::vector<std::string> all = {name};
  all.insert(all.end(), also.begin(), also.end());
  return all;
}

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> table = make_table();
  return table;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const Architecture& architecture : architectures()) names.push_back(architecture.name);
  return names;
}

const Architecture& find_architecture(const std::string& name) {
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == name) return architecture;
  }
  if (const Architecture* family = architecture_of_model_type(name)) {
    throw InvalidInput("--arch: \"" + one_line(name) + "\" has the tensors of " + family->name +
                       " - write --arch " + family->name);
  }
  std::vector<std::string> known = {"auto"};
  for (const std::string& word : architecture_names()) known.push_back(word);
  throw InvalidInput("--arch: \"" + one_line(name) + "\" is unknown" + suggestion(name, known));
}

const Architecture* architecture_of_model_type(const std::string& model_type) {
  for (const Architecture& architecture : architectures()) {
    const std::vector<std::string> types = architecture.model_types();
    if (std::ranges::find(types, model_type) != types.end()) return &architecture;
  }
  return nullptr;
}

}  // namespace headlab
