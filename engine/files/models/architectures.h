// SPDX-License-Identifier: Apache-2.0
/// \file The families of models whose heads import_heads() reads: one table entry each.
#pragma once

#include <string>
#include <vector>

#include "engine/files/document.h"

namespace headlab {

/// How the projections of queries, keys and values share tensors. H heads, G groups of keys.
enum class ProjectionLayout {
  separate,         ///< one tensor for queries [H k], one for keys [G k]
  query_key_value,  ///< one tensor: queries of all heads, then keys, then values [(H + 2 G) k]
  by_group          ///< one tensor: queries, key and value of group 0, then of group 1, ...
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
  std::string value = {};             ///< weight of the value projection, where separate
  ProjectionLayout layout = ProjectionLayout::separate;
  std::string output;        ///< weight of the output projection [d, H e]
  bool input_first = false;  ///< weights are [in, out] and not [out, in]

  /// Gain of the norm in front of a layer; the first name that is there is taken. Empty: the
  /// projections see the residual stream as it is.
  std::vector<std::string> gains;
  std::vector<std::string> first_gains = {};  ///< of layer 0, where its norm has another name
  double gain_offset = 0;                     ///< added to the stored gain

  /// Gains of norms of queries and keys, [k] of each head or of all heads side by side; empty where
  /// there are none.
  std::string query_norm = {};
  std::string key_norm = {};
  std::string sink = {};  ///< logits that take weight, one of each head

  bool rotary = false;
  std::string left_out = {};  ///< what the heads lack besides biases, for the output

  /// Names in config.json; empty where the family has no such member.
  std::string heads = "num_attention_heads";
  std::string kv_heads = {};
  std::string layers = "num_hidden_layers";
  std::string head_dim = {};
  std::string hidden = "hidden_size";
  int usual_head_dim = 0;  ///< where config.json has none; 0: hidden over heads
  std::vector<std::string> of_divided_width = {};  ///< model_types whose heads divide `hidden`
  std::string scaled_by = {};   ///< logits are divided by the root of this member
  std::string multiplier = {};  ///< logits are multiplied by this member
  /// Sets the groups of keys from members that only this family has; null: `kv_heads` says them.
  int (*groups)(const Value& config, int heads) = nullptr;
  std::vector<ConfigRequirement> required = {};

  /// The temperature is not sqrt(k), but stands in config.json.
  bool has_own_temperature() const { return !scaled_by.empty() || !multiplier.empty(); }

  /// `name` and `also`.
  std::vector<std::string> model_types() const;
};

/// All families, by name.
const std::vector<Architecture>& architectures();

/// The names of all families.
std::vector<std::string> architecture_names();

/// The family called `name`, as --arch has it. Throws InvalidInput, naming --arch.
const Architecture& find_architecture(const std::string& name);

/// A model of no family, whose tensors have these names: # in the place of the layer. One pattern
/// for both: queries, keys and values stand in one tensor in this order.
Architecture named_tensors(const std::string& query, const std::string& key,
                           const std::string& gain);

/// The family of a model_type of config.json, or nullptr.
const Architecture* architecture_of_model_type(const std::string& model_type);

}  // namespace headlab
