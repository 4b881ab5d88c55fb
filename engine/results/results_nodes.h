// SPDX-License-Identifier: Apache-2.0
/// \file The nodes of all conditions of one moment layout in results.nc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/netcdf/file.h"
#include "engine/moments/moment_tree.h"

namespace headlab {

/// A condition, from 0, with its moments.
struct NumberedTree {
  std::size_t condition;
  const MomentTree* tree;
};

/// SHA-256 of the numbers of nodes, because a file keeps no sums of its own.
std::string nodes_sha256(const std::vector<Node>& nodes);

/// Adds the group `nodes` to a group with the dimension `query`, of stacks `layer`: the nodes of
/// trees of one layout, one tree after the other, without comoments where moments are per draw. The
/// trees are read when the file is saved. Throws NetcdfError.
void write_nodes(const NetcdfGroup& group, const std::vector<NumberedTree>& trees);

/// Adds the group `extremes` to a group with the dimension `condition`: the kept extremes of trees,
/// the i-th of condition i of the group. Nothing where no tree has any.
void write_extremes(const NetcdfGroup& group, const std::vector<NumberedTree>& trees);

/// Kept extremes of the conditions of a group, as write_extremes() wrote them; all unknown in a
/// file without them. Throws NetcdfError.
std::vector<std::optional<Extremes>> read_extremes(const NetcdfGroup& group,
                                                   std::size_t conditions);

}  // namespace headlab
