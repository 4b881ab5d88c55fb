// SPDX-License-Identifier: Apache-2.0
// Source of the names: the model classes of Hugging Face Transformers 4, one per model_type.
#include "engine/files/models/architectures.h"

#include <algorithm>

#include "engine/files/error.h"
#include "engine/files/json_reader.h"
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
          .output = "encoder.layer.#.attention.output.dense.weight",
          .gains = {"encoder.layer.@.output.LayerNorm.weight",
                    "encoder.layer.@.output.LayerNorm.gamma"},
          .first_gains = {"embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"},
          .required = {absolute_positions}};
}

/// Names of Llama, which most decoders since share.
Architecture like_llama(std::string name) {
  return {.name = std::move(name),
          .also = {},
          .prefixes = {"model.", "", "model.language_model.", "language_model.model.",
                       "model.text_model."},
          .query = "layers.#.self_attn.q_proj.weight",
          .key = "layers.#.self_attn.k_proj.weight",
          .value = "layers.#.self_attn.v_proj.weight",
          .output = "layers.#.self_attn.o_proj.weight",
          .gains = {"layers.#.input_layernorm.weight"},
          .rotary = true,
          .left_out = rotary_positions,
          .kv_heads = "num_key_value_heads",
          .head_dim = "head_dim"};
}

/// Names of models that keep query, key and value of a group of heads in one tensor of `attention`.
Architecture by_group(std::string name, std::string prefix, const std::string& attention) {
  const std::string fused = attention + ".query_key_value.weight";
  return {.name = std::move(name),
          .also = {},
          .prefixes = {std::move(prefix), ""},
          .query = fused,
          .key = fused,
          .layout = ProjectionLayout::by_group,
          .output = attention + ".dense.weight"};
}

/// Falcon's 7B has one key for all heads, later ones num_kv_heads, others one for each.
int groups_of_falcon(const Value& config, int heads) {
  if (is_true(member(config, "new_decoder_architecture"))) {
    return static_cast<int>(count_of(member(config, "num_kv_heads")).value_or(0));
  }
  const Value* const multi_query = config.find("multi_query");
  return multi_query == nullptr || is_true(*multi_query) ? 1 : heads;
}

const std::string norms_of_heads =
    ", division of each query and key by its norm (the gains are folded in)";

std::vector<Architecture> make_table() {
  std::vector<Architecture> table;

  table.push_back(like_bert("bert", "bert."));

  Architecture bloom = by_group("bloom", "transformer.", "h.#.self_attention");
  bloom.gains = {"h.#.input_layernorm.weight"};
  bloom.left_out = "what ALiBi adds by position";
  bloom.heads = "n_head";
  bloom.layers = "n_layer";
  table.push_back(bloom);

  table.push_back({.name = "distilbert",
                   .also = {},
                   .prefixes = {"distilbert.", ""},
                   .query = "transformer.layer.#.attention.q_lin.weight",
                   .key = "transformer.layer.#.attention.k_lin.weight",
                   .output = "transformer.layer.#.attention.out_lin.weight",
                   .gains = {"transformer.layer.@.output_layer_norm.weight"},
                   .first_gains = {"embeddings.LayerNorm.weight"},
                   .heads = "n_heads",
                   .layers = "n_layers",
                   .hidden = "dim"});

  Architecture falcon = by_group("falcon", "transformer.", "h.#.self_attention");
  falcon.gains = {"h.#.ln_attn.weight", "h.#.input_layernorm.weight"};
  falcon.rotary = true;
  falcon.left_out = rotary_positions;
  falcon.groups = groups_of_falcon;
  falcon.required = {{"alibi", {"false"}, "it is read as a model of rotary positions"}};
  table.push_back(falcon);

  // Its RMSNorm multiplies by 1 + w.
  Architecture gemma = like_llama("gemma");
  gemma.gain_offset = 1;
  gemma.usual_head_dim = 256;
  table.push_back(gemma);

  Architecture gemma2 = gemma;
  gemma2.name = "gemma2";
  gemma2.scaled_by = "query_pre_attn_scalar";
  gemma2.left_out += ", the soft cap of logits";
  gemma2.of_divided_width = {"gemma2"};
  table.push_back(gemma2);

  Architecture gemma3 = gemma;
  gemma3.name = "gemma3";
  gemma3.also = {"gemma3_text"};
  gemma3.of_divided_width = {"gemma3", "gemma3_text"};
  gemma3.scaled_by = "query_pre_attn_scalar";
  gemma3.query_norm = "layers.#.self_attn.q_norm.weight";
  gemma3.key_norm = "layers.#.self_attn.k_norm.weight";
  gemma3.left_out += norms_of_heads;
  table.push_back(gemma3);

  table.push_back(like_llama("glm4"));

  table.push_back(
      {.name = "gpt2",
       .also = {},
       .prefixes = {"transformer.", ""},
       .query = "h.#.attn.c_attn.weight",
       .key = "h.#.attn.c_attn.weight",
       .layout = ProjectionLayout::query_key_value,
       .output = "h.#.attn.c_proj.weight",
       .input_first = true,
       .gains = {"h.#.ln_1.weight"},
       .heads = "n_head",
       .layers = "n_layer",
       .hidden = "n_embd",
       .required = {{"scale_attn_weights", {"true"}, temperature_is_sqrt_k},
                    {"scale_attn_by_inverse_layer_idx", {"false"}, temperature_is_sqrt_k}}});

  Architecture gpt_neox = by_group("gpt_neox", "gpt_neox.", "layers.#.attention");
  gpt_neox.gains = {"layers.#.input_layernorm.weight"};
  gpt_neox.rotary = true;
  gpt_neox.left_out = rotary_positions;
  table.push_back(gpt_neox);

  Architecture gpt_oss = like_llama("gpt_oss");
  gpt_oss.left_out += ", the sinks that take weight";
  gpt_oss.sink = "layers.#.self_attn.sinks";
  table.push_back(gpt_oss);

  Architecture granite = like_llama("granite");
  granite.multiplier = "attention_multiplier";
  table.push_back(granite);

  Architecture llama = like_llama("llama");
  llama.also = {"mistral", "mixtral"};
  llama.of_divided_width = {"llama"};
  table.push_back(llama);

  // Its norms follow the attention; those of queries and keys are over all heads.
  Architecture olmo2 = like_llama("olmo2");
  olmo2.gains.clear();
  olmo2.query_norm = "layers.#.self_attn.q_norm.weight";
  olmo2.key_norm = "layers.#.self_attn.k_norm.weight";
  olmo2.left_out +=
      ", division of all queries and all keys of a token by their norm (the gains are folded in)";
  table.push_back(olmo2);

  table.push_back(
      {.name = "opt",
       .also = {},
       .prefixes = {"model.decoder.", "decoder.", ""},
       .query = "layers.#.self_attn.q_proj.weight",
       .key = "layers.#.self_attn.k_proj.weight",
       .output = "layers.#.self_attn.out_proj.weight",
       .gains = {"layers.#.self_attn_layer_norm.weight"},
       .required = {{"do_layer_norm_before", {"true"}, "the norm is taken to stand in front"}}});

  const ConfigRequirement no_norms = {.key = "qk_layernorm",
                                      .allowed = {"false"},
                                      .why = "heads are taken not to normalise their queries"};
  Architecture phi = like_llama("phi");
  phi.output = "layers.#.self_attn.dense.weight";
  phi.required = {no_norms};
  table.push_back(phi);

  Architecture phi3 = like_llama("phi3");
  phi3.query = phi3.key = "layers.#.self_attn.qkv_proj.weight";
  phi3.layout = ProjectionLayout::query_key_value;
  table.push_back(phi3);

  Architecture qwen2 = like_llama("qwen2");
  qwen2.also = {"qwen2_moe", "qwen2_vl_text", "qwen2_5_vl_text"};
  table.push_back(qwen2);

  Architecture qwen3 = like_llama("qwen3");
  qwen3.also = {"qwen3_moe"};
  qwen3.query_norm = "layers.#.self_attn.q_norm.weight";
  qwen3.key_norm = "layers.#.self_attn.k_norm.weight";
  qwen3.usual_head_dim = 128;
  qwen3.left_out += norms_of_heads;
  table.push_back(qwen3);

  Architecture roberta = like_bert("roberta", "roberta.");
  roberta.also = {"xlm-roberta", "camembert"};
  table.push_back(roberta);

  Architecture smollm3 = like_llama("smollm3");
  smollm3.left_out += " (some layers have no positions)";
  table.push_back(smollm3);

  Architecture stablelm = like_llama("stablelm");
  stablelm.required = {no_norms};
  stablelm.head_dim.clear();
  table.push_back(stablelm);

  table.push_back(like_llama("starcoder2"));

  table.push_back({.name = "vit",
                   .also = {"deit"},
                   .prefixes = {"vit.", "deit.", ""},
                   .query = "encoder.layer.#.attention.attention.query.weight",
                   .key = "encoder.layer.#.attention.attention.key.weight",
                   .output = "encoder.layer.#.attention.output.dense.weight",
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

Architecture named_tensors(const std::string& query, const std::string& key,
                           const std::string& gain) {
  Architecture made;
  made.name = "named tensors";
  made.prefixes.emplace_back();
  made.query = query;
  made.key = key;
  if (query == key) made.layout = ProjectionLayout::query_key_value;
  if (!gain.empty()) {
    made.gains.push_back(gain);
  } else {
    made.left_out = "the gains of norms";
  }
  return made;
}

const Architecture* architecture_of_model_type(const std::string& model_type) {
  for (const Architecture& architecture : architectures()) {
    const std::vector<std::string> types = architecture.model_types();
    if (std::ranges::find(types, model_type) != types.end()) return &architecture;
  }
  return nullptr;
}

}  // namespace headlab
