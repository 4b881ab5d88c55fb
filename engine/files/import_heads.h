// SPDX-License-Identifier: Apache-2.0
/// \file Heads of a trained transformer: from the query and key weights of a checkpoint to
/// subspaces.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/head_file.h"

namespace headlab {

/// Families of models, by how their tensors are named and their attention is built.
enum class Architecture {
  bert,   ///< normalised after each block, absolute positions
  gpt2,   ///< normalised before each block, absolute positions, queries, keys, values in one tensor
  llama,  ///< RMS-normalised before each block, rotary positions, keys shared by groups of heads
};

/// The names of the architectures as the command line has them.
const std::vector<std::pair<std::string, Architecture>>& architectures();

/// What the tensors of a checkpoint do not say.
struct HeadCounts {
  int heads = 0;              ///< H
  int kv_heads = 0;           ///< G: heads h G / H share keys, rounded down; G divides H
  std::optional<int> layers;  ///< of the model, where it is known
};

/// Reads the counts from the config.json that comes with a checkpoint. Throws InvalidInput, one
/// line that begins with the path, also where the model computes attention in another way than
/// import_heads() assumes.
HeadCounts read_head_counts(const std::string& path, Architecture architecture);

/// Which heads to take.
struct HeadImport {
  Architecture architecture = Architecture::bert;
  HeadCounts counts;
  std::optional<int> layer;  ///< all layers without one
};

/// Reads heads from a safetensors file under the tensor names of Hugging Face.
///
/// Head h has W_Q and W_K [d][k], so that its logits are (W_Q^T x).(W_K^T X)/t with t = sqrt(k) and
/// x, X normalised tokens before their gain: the gain g of the LayerNorm or RMSNorm in front is
/// folded in, W = diag(g) W_model. Its subspace is the column space of W_K, by QR. For absolute
/// positions W_Q W_K^T = U diag(s) V^T besides; with rotary ones queries and keys are turned by
/// their positions between the two factors, so that no one product stands for the head.
///
/// Biases are left out, those of the LayerNorm too: what they add to a key's projection adds the
/// same to the logits of all keys and cancels in the softmax, and what they add to a query's shifts
/// all queries alike. Where keys are shared, heads of a group have the same subspace.
///
/// Throws InvalidInput, one line that begins with the checkpoint's path, where a tensor is missing,
/// has another shape than the counts say, or where the keys of a head have rank below k.
HeadFile import_heads(const std::string& path, const HeadImport& import, int threads);

}  // namespace headlab
