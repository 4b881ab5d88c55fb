// SPDX-License-Identifier: Apache-2.0
/// \file The tensors of a trained model, in one safetensors file or in several (shards).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/models/safetensors.h"

namespace headlab {

inline constexpr std::size_t max_index_bytes = std::size_t{64} << 20;

/// Names of tensors with the shard that holds each.
using ShardIndex = std::map<std::string, std::string>;

/// Reads the text of FILE.safetensors.index.json, {"weight_map": {TENSOR: SHARD}}. Throws
/// InvalidInput, one line that begins with `source`, also where a shard is not the name of a
/// safetensors file in the folder of the index.
ShardIndex parse_shard_index(std::string_view text, const std::string& source);

/// A model checkpoint that is open. Of several shards only those that are asked for are opened.
class ModelCheckpoint {
 public:
  /// `path` is a safetensors file, the index of several, or a folder with either. Throws
  /// InvalidInput, one line that begins with the file or folder at fault; for a PyTorch file the
  /// line has the command that converts it.
  explicit ModelCheckpoint(const std::string& path);

  /// The safetensors file or the index.
  const std::string& source() const { return source_; }
  /// The file that holds a tensor.
  const std::string& source_of(const std::string& tensor);

  bool has(const std::string& tensor) const;
  /// Whether any tensor has a name that begins so.
  bool has_names_from(const std::string& prefix) const;
  /// Type and shape. Throws InvalidInput where the shard is missing or lacks the tensor.
  const TensorInfo& info(const std::string& tensor);
  /// The numbers, as SafetensorsFile::read().
  std::vector<double> read(const std::string& tensor);

 private:
  SafetensorsFile& file_of(const std::string& tensor);

  std::string source_;
  std::unique_ptr<SafetensorsFile> single_;
  ShardIndex index_;                                              ///< empty for a single file
  std::map<std::string, std::unique_ptr<SafetensorsFile>> open_;  ///< shards by name
};

/// Rejects a path of a checkpoint where there is nothing.
void require_model(const std::string& path);

/// The config.json in the folder of a checkpoint, or in the folder `path` itself; empty where there
/// is none.
std::string config_next_to(const std::string& path);

}  // namespace headlab
