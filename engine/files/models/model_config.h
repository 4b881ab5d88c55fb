// SPDX-License-Identifier: Apache-2.0
/// \file What config.json says of a trained model: its family and its numbers of heads.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "engine/files/models/architectures.h"

namespace headlab {

/// What the tensors of a checkpoint do not say.
struct HeadCounts {
  int heads = 0;                ///< H
  int kv_heads = 0;             ///< G: heads h G / H share keys, rounded down; G divides H
  std::optional<int> layers;    ///< of the model, where it is known
  std::optional<int> head_dim;  ///< k, where it is known; otherwise the shapes of tensors say it
  std::optional<int> dimensions = {};      ///< d, the same
  std::optional<double> temperature = {};  ///< where it is not sqrt(k)
  /// What rotary positions multiply queries and keys by, each of them.
  double rotary_factor = 1;
};

/// The family of a model with its counts.
struct ModelConfig {
  std::shared_ptr<const Architecture> own = {};  ///< of no family: what `architecture` points to
  const Architecture* architecture = nullptr;
  HeadCounts counts;
};

/// Largest number of heads of a layer.
inline constexpr int max_model_heads = 1024;
inline constexpr int max_model_layers = 4096;
inline constexpr std::size_t max_config_bytes = std::size_t{16} << 20;

/// Reads the config.json that comes with a checkpoint, as one of `architecture`, or without one as
/// its model_type says. Throws InvalidInput, one line that begins with the path, also where the
/// model computes attention in another way than import_heads() assumes.
ModelConfig read_model_config(const std::string& path, const Architecture* architecture);

}  // namespace headlab
