// SPDX-License-Identifier: Apache-2.0
/// \file A checkpoint in safetensors with other numbers in some tensors, every other byte kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

/// A tensor that gets other numbers. Its name may lack the prefix of the model, or have one more.
struct TensorChange {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<double> numbers;
  bool added = false;  ///< to those that stand there
};

/// Writes the folder `checkpoint` as the folder `out`, there whole or not at all, with headlab.json
/// that has `record`. Throws InvalidInput and RunFailed.
void write_changed_checkpoint(const std::string& checkpoint, const std::string& out,
                              const std::vector<TensorChange>& changes, const std::string& record,
                              bool overwrite);

}  // namespace headlab
