// SPDX-License-Identifier: Apache-2.0
/// \file A checkpoint in safetensors with other numbers in some tensors, or with parts of them, and
/// every other byte kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/files/models/safetensors.h"

namespace headlab {

/// A tensor that gets other numbers. Its name may lack the prefix of the model, or have one more.
struct TensorChange {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<double> numbers;
  bool added = false;  ///< to those that stand there
};

/// Places along an axis.
struct AxisPart {
  std::uint64_t first = 0, count = 0;

  bool operator==(const AxisPart&) const = default;
};

/// A tensor of which only some parts along an axis stay, in this order.
struct TensorCut {
  std::string name;  ///< in full
  std::size_t axis = 0;
  std::vector<AxisPart> kept;
};

struct CheckpointChanges {
  std::vector<TensorChange> tensors;
  std::vector<TensorCut> cuts;  ///< of what the tensors are after their changes
  std::string config;           ///< text of config.json; empty: as it is
  std::string record;           ///< text of headlab.json, which says what was done
};

/// All tensors of the safetensors files of a folder. Throws InvalidInput where there are none.
TensorTable checkpoint_tensors(const std::string& checkpoint);

/// Writes the folder `checkpoint` as the folder `out`, there whole or not at all. Throws
/// InvalidInput and RunFailed.
void write_changed_checkpoint(const std::string& checkpoint, const std::string& out,
                              const CheckpointChanges& changes, bool overwrite);

}  // namespace headlab
