// SPDX-License-Identifier: Apache-2.0
/// \file The families of models whose heads import_heads() reads: one table entry each.
#pragma once

#include <string>
#include <vector>

namespace headlab {

/// How the projections of queries, keys and values share tensors. H heads, G groups of keys.
enum class ProjectionLayout {
  separate,         ///< one tensor for queries [H k], one for keys [G k]
  query_key_value,  ///< one tensor: queries of all heads, then keys, then values [(H + 2 G) k]
  by_head           ///< one tensor: query, key and value of head 0, then of head 1, ... [3 H k]
};

/// A member of config.json with the values that the import is correct for.
struct ConfigRequirement {
  std::string key;
  std::vector<std::string> allowed;  ///< as JSON; a missing member is allowed too
  std::string why;
};

/// One family. In patterns of tensor names '#' is the number of the layer, '@' that of the layer
/// before. To add a family add an entry in architectures.cpp: nothing else names families.
struct Architecture {
  std::string name;               ///< its model_type, and the word of --arch
  std::vector<std::string> also;  ///< other model_types with the same tensors and attention

  std::vector<std::string> prefixes;  ///< of all tensors; the first one that fits is taken
  std::string query;                  ///< weight of the query projection
  std::string key;                    ///< weight of the key projection; `query` again where fused
  ProjectionLayout layout = ProjectionLayout::separate;
  bool input_first = false;  ///< weights are [in, out] and not [out, in]

  /// Gain of the norm in front of a layer; the first name that is there is taken.
  std::vector<std::string> gains;
  std::vector<std::string> first_gains = {};  ///< of layer 0, where its norm has another name
  double gain_offset = 0;                     ///< added to the stored gain

  /// Gains [k] of norms of each query and each key; empty where heads have none.
  std::string query_norm = {};
  std::string key_norm = {};

  bool rotary = false;
  std::string left_out = {};  ///< what the heads lack besides biases, for the output

  /// Names in config.json; empty where the family has no such member.
  std::string heads = "num_attention_heads";
  std::string kv_heads = {};
  std::string layers = "num_hidden_layers";
  std::string head_dim = {};
  std::string hidden = "hidden_size";
  int usual_head_dim = 0;  ///< where config.json has none; 0: hidden over heads
  std::vector<ConfigRequirement> required = {};

  /// `name` and `also`.
  std::vector<std::string> model_types() const;
};

/// All families, by name.
const std::vector<Architecture>& architectures();

/// The names of all families.
std::vector<std::string> architecture_names();

/// The family called `name`, as --arch has it. Throws InvalidInput, naming --arch.
const Architecture& find_architecture(const std::string& name);

/// The family of a model_type of config.json, or nullptr.
const Architecture* architecture_of_model_type(const std::string& model_type);

}  // namespace headlab
