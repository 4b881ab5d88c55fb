// SPDX-License-Identifier: Apache-2.0
/// \file Moments of a run as nodes of a binary tree aligned to the replicate number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/statistics/moments.h"

namespace headlab {

/// Replicates from this number on come in leaves, those before one by one.
inline constexpr std::uint64_t first_leaf = 256;

/// Consecutive replicates first .. first + moments.count - 1.
struct Node {
  std::uint64_t first = 0;
  Moments moments;
};

/// Replicates first .. first + replicates - 1 of a run of `total`.
struct ReplicateRange {
  std::uint64_t first = 0;
  std::uint64_t replicates = 0;
  std::uint64_t total = 0;

  std::uint64_t end() const { return first + replicates; }
  bool operator==(const ReplicateRange&) const = default;
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
  /// The tree that has these nodes() and kept_extremes(); throws std::invalid_argument where none
  /// has.
  MomentTree(const MomentLayout& layout, std::vector<Node> nodes,
             std::optional<Extremes> extremes = {});
  /// The tree of a range of a run. It keeps the largest aligned nodes of the range, none larger
  /// than a node of the whole run. join() makes the tree of the run from such trees.
  MomentTree(const MomentLayout& layout, const ReplicateRange& range);
  /// The same with the nodes and extremes that it has already; throws std::invalid_argument where
  /// no tree of the range has these.
  MomentTree(const MomentLayout& layout, const ReplicateRange& range, std::vector<Node> nodes,
             std::optional<Extremes> extremes = {});

  const MomentLayout& layout() const { return layout_; }
  /// Replicates collected so far.
  std::uint64_t count() const { return count_; }
  /// The replicate that comes next.
  std::uint64_t end() const { return first_ + count_; }
  /// Replicates of the largest node that can be appended at replicate number `at`.
  std::uint64_t max_node(std::uint64_t at) const {
    return node_replicates(layout_, total_ > 0 ? total_ : at);
  }

  /// Appends the nodes of the range that follows in the same run, to a tree of a range; throws
  /// std::invalid_argument for any other. Once the run is whole, its tree is whole_run().
  void join(const MomentTree& next);
  /// The same where replicates between the two are missing: such a tree has figures, and nothing
  /// can be appended to it.
  void join_after_gap(const MomentTree& next);
  /// The tree of the run whose replicates have all been joined, with the bits of one that collected
  /// them itself; throws std::invalid_argument where some are missing.
  MomentTree whole_run() const;

  /// Appends the replicates that follow: one of them while count() < first_leaf_of(layout), then a
  /// node of at most node_replicates(layout, count()) that is aligned to its own size (the last
  /// leaf of a run may be shorter, unless it is a draw).
  void append(Moments moments);

  /// How many of them a run can resume from: all, or those before a last leaf that is not full.
  std::uint64_t whole_count() const;
  /// The tree of those.
  MomentTree whole() const;

  /// The tree without what exact controls add to its moments: that of a run without controls.
  MomentTree without_controls() const;

  /// The nodes as kept: enough to resume with the same bits.
  const std::vector<Node>& nodes() const { return nodes_; }

  /// The most extreme replicates of all collected; none where those of some are not known. They are
  /// kept for the tree, not for each node, which they would outgrow.
  std::optional<Extremes> extremes() const;
  /// As kept: of whole() and all replicates after it, so that those of whole() are known.
  const std::optional<Extremes>& kept_extremes() const { return extremes_; }

  /// The nodes that standard errors are computed over: as nodes(), with the pieces of the partial
  /// tail merged into one (of a range, as nodes()).
  std::vector<Node> jackknife_nodes() const;

 private:
  /// Appends a node and merges siblings up to nodes of `size` replicates.
  void push(Node node, std::uint64_t size);
  /// True where a node of so many replicates would hold a part of a draw.
  bool splits_draw(std::uint64_t replicates) const;
  /// Adds those of the node that comes last.
  void add_extremes(const Extremes* of_node);

  MomentLayout layout_;
  std::uint64_t first_ = 0;
  std::uint64_t total_ = 0;  ///< of the run, for a tree of a range; else 0
  std::uint64_t count_ = 0;
  std::vector<Node> nodes_;  ///< without extremes
  std::optional<Extremes> extremes_;
};

/// Most entries of a list of kept_extremes().
inline constexpr std::size_t max_kept_extremes = max_extremes + leaf_replicates - 1;

}  // namespace headlab
