// SPDX-License-Identifier: Apache-2.0
/// \file Heads of a trained transformer: from the query and key weights of a checkpoint to
/// subspaces.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/files/models/head_file.h"
#include "engine/files/models/model_config.h"

namespace headlab {

/// Which heads to take.
struct HeadImport {
  const Architecture* architecture = nullptr;
  HeadCounts counts;
  std::optional<int> layer;         ///< all layers without one
  bool biases = false;              ///< as weights of a constant coordinate
  std::function<bool()> stop = {};  ///< true: throw Stopped; asked for each head
};

/// Reads heads from a model checkpoint (ModelCheckpoint: a safetensors file, an index of shards or
/// a folder) under the tensor names of Hugging Face.
///
/// Head h has W_Q and W_K [d][k], so that its logits are (W_Q^T x).(W_K^T X)/t with t = sqrt(k), or
/// what config.json says, and x, X normalised tokens before their gain: the gain g of the LayerNorm
/// or RMSNorm in front is folded in, W = diag(g) W_model, and so are the gains a [k] of norms of
/// single queries and keys, W = W_model diag(a), whereas the division by the norm is not. Its
/// subspace is the column space of W_K, by QR. For absolute positions W_Q W_K^T = U diag(s) V^T
/// besides; with rotary ones queries and keys are turned by their positions between the two
/// factors, so that no one product stands for the head.
///
/// With `biases` the inputs have a last coordinate that is always 1, whose weights are the biases,
/// those of the LayerNorm among them: W is [d + 1][k]. Otherwise they are left out: what they add
/// to a key's projection adds the same to the logits of all keys and cancels in the softmax (with
/// rotary positions it depends on the position of the key, never on the key), and what they add to
/// a query's shifts all queries alike. Where keys are shared, heads of a group have the same
/// subspace.
///
/// Heads whose keys have rank below k are left out and listed in `deficient`; a layer of such heads
/// alone is left out.
///
/// Throws InvalidInput, one line that begins with the file at fault, where a tensor is missing, has
/// another shape than the counts say, or where no head is left.
HeadFile import_heads(const std::string& path, const HeadImport& import, int threads);

}  // namespace headlab
