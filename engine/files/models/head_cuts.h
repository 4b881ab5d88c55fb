// SPDX-License-Identifier: Apache-2.0
/// \file Heads cut out of a checkpoint of transformers, whose tensors become smaller.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "engine/files/models/changed_checkpoint.h"

namespace headlab {

/// Numbers of heads by the layer.
using HeadsOfLayers = std::map<int, std::vector<std::size_t>>;

/// Sets the cuts and config.json of a checkpoint without these heads: rows of queries, columns of
/// the output map, and rows of keys and values of groups without heads. One config.json is of all
/// layers, so that each has to keep as many heads in as many groups of one size. Throws
/// InvalidInput where they do not, and where the family cannot have fewer heads of the same size.
void cut_heads(const std::string& checkpoint, const HeadsOfLayers& removed,
               CheckpointChanges& changes);

}  // namespace headlab
