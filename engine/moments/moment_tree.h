// SPDX-License-Identifier: Apache-2.0
/// \file Moments of a run as nodes of a binary tree aligned to the replicate number.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/moments.h"

namespace headlab {

/// Replicates from this number on come in leaves, those before one by one.
inline constexpr std::uint64_t first_leaf = 256;

/// Consecutive replicates first .. first + moments.count - 1.
struct Node {
  std::uint64_t first = 0;
  Moments moments;
};

/// The same for a layout: replicates whose moments are per draw come in leaves from the start.
inline std::uint64_t first_leaf_of(const MomentLayout& layout) {
  return layout.per_draw ? 0 : first_leaf;
}

/// Replicates of a whole node after `count` replicates; it grows with `count`.
std::uint64_t node_replicates(const MomentLayout& layout, std::uint64_t count);

/// Collects nodes in the order of their replicates and merges them along a binary tree aligned to
/// the replicate number, so that the result depends on the replicates alone: not on threads, blocks
/// or whether a run was continued. Below 256 replicates every replicate is a node (or every leaf,
/// where moments are per draw); from there a node is 8 2^j replicates for the smallest j that
/// leaves at most 128 whole nodes, followed by the binary pieces of what does not fill a node.
class MomentTree {
 public:
  explicit MomentTree(const MomentLayout& layout) : layout_(layout) {}
  /// The tree that has these nodes(); throws std::invalid_argument where none has.
  MomentTree(const MomentLayout& layout, std::vector<Node> nodes);

  const MomentLayout& layout() const { return layout_; }
  /// Replicates collected so far.
  std::uint64_t count() const { return count_; }

  /// Appends the replicates that follow: one of them while count() < first_leaf_of(layout), then a
  /// node of at most node_replicates(layout, count()) that is aligned to its own size (the last
  /// leaf of a run may be shorter, unless it is a draw).
  void append(Moments moments);

  /// How many of them a run can resume from: all, or those before a last leaf that is not full.
  std::uint64_t whole_count() const;
  /// The tree of those.
  MomentTree whole() const;

  /// The nodes as kept: enough to resume with the same bits.
  const std::vector<Node>& nodes() const { return nodes_; }

  /// The nodes that standard errors are computed over: as nodes(), with the pieces of the partial
  /// tail merged into one.
  std::vector<Node> jackknife_nodes() const;

 private:
  /// Appends a node and merges siblings up to nodes of `size` replicates.
  void push(Node node, std::uint64_t size);
  /// True where a node of so many replicates would hold a part of a draw.
  bool splits_draw(std::uint64_t replicates) const;

  MomentLayout layout_;
  std::uint64_t count_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace headlab
