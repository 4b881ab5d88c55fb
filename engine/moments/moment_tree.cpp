// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/moment_tree.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace headlab {
namespace {

constexpr std::uint64_t whole_nodes = 128;

/// One leaf out of nodes of one replicate each, with the bits a backend gives to the whole leaf.
Moments leaf_of_replicates(const MomentLayout& layout, std::span<const Node> units) {
  std::vector<double> statistics;
  Moments leaf;
  for (const Node& unit : units) {
    statistics.insert(statistics.end(), unit.moments.mean.begin(), unit.moments.mean.end());
    leaf.windows.add(unit.moments.windows);
  }
  leaf_moments(layout, statistics, static_cast<int>(units.size()), leaf);
  return leaf;
}

}  // namespace

std::uint64_t node_replicates(const MomentLayout& layout, std::uint64_t count) {
  if (count < first_leaf_of(layout)) return 1;
  std::uint64_t size = leaf_replicates;
  while (count / size > whole_nodes) size *= 2;
  return size;
}

MomentTree::MomentTree(const MomentLayout& layout, std::vector<Node> nodes)
    : layout_(layout), nodes_(std::move(nodes)) {
  for (const Node& node : nodes_) count_ += node.moments.count;
  std::uint64_t first = 0;
  for (const Node& node : nodes_) {
    // Whole nodes, then the binary pieces of what does not fill one.
    std::uint64_t size = node_replicates(layout_, count_);
    while (size > leaf_replicates && count_ - first < size) size /= 2;
    size = std::min(size, count_ - first);
    if (node.first != first || node.moments.count != size || size == 0 || splits_draw(size) ||
        node.moments.mean.size() != layout_.statistics() ||
        node.moments.comoment.size() != layout_.comoments()) {
      throw std::invalid_argument("node at replicate " + std::to_string(first) +
                                  " is not one that a run of " + std::to_string(count_) +
                                  " replicates keeps");
    }
    first += size;
  }
}

std::uint64_t MomentTree::whole_count() const {
  return count_ < first_leaf_of(layout_) ? count_ : count_ - count_ % leaf_replicates;
}

bool MomentTree::splits_draw(std::uint64_t replicates) const {
  return layout_.per_draw && replicates % leaf_replicates != 0;
}

MomentTree MomentTree::whole() const {
  MomentTree tree = *this;
  if (whole_count() < count_) tree.nodes_.pop_back();
  tree.count_ = whole_count();
  return tree;
}

void MomentTree::append(Moments moments) {
  const std::uint64_t before = node_replicates(layout_, count_);
  const std::uint64_t added = moments.count;
  const bool whole = std::has_single_bit(added) && added >= leaf_replicates;
  if (added == 0 || added > before || !(added <= leaf_replicates || whole) || splits_draw(added)) {
    throw std::invalid_argument("a node of " + std::to_string(added) + " replicates after " +
                                std::to_string(count_) + ": 1 to 8, or 8 2^j up to " +
                                std::to_string(before) + " can be appended");
  }
  if (count_ % (whole ? added : 1) != 0) {
    throw std::invalid_argument("a node of " + std::to_string(added) + " replicates after " +
                                std::to_string(count_) + " is not aligned to its size");
  }
  Node last{count_, std::move(moments)};
  count_ += last.moments.count;
  const std::uint64_t size = node_replicates(layout_, count_);
  if (size == before) {
    push(std::move(last), size);
    return;
  }
  auto nodes = std::exchange(nodes_, {});
  nodes.push_back(std::move(last));
  if (before == 1) {
    for (std::size_t i = 0; i < nodes.size(); i += leaf_replicates) {
      const auto units = std::span(nodes).subspan(i, leaf_replicates);
      push({units[0].first, leaf_of_replicates(layout_, units)}, size);
    }
  } else {
    for (Node& node : nodes) push(std::move(node), size);
  }
}

void MomentTree::push(Node node, std::uint64_t size) {
  nodes_.push_back(std::move(node));
  while (nodes_.size() >= 2) {
    Node& left = nodes_[nodes_.size() - 2];
    const std::uint64_t half = left.moments.count;
    const bool siblings = half >= leaf_replicates && nodes_.back().moments.count == half &&
                          left.first % (2 * half) == 0;
    if (!siblings || 2 * half > size) return;
    merge_moments(layout_, left.moments, nodes_.back().moments);
    nodes_.pop_back();
  }
}

std::vector<Node> MomentTree::jackknife_nodes() const {
  std::vector<Node> nodes = nodes_;
  const std::uint64_t size = node_replicates(layout_, count_);
  const auto tail = static_cast<std::size_t>(count_ / size);  // nodes before it are whole
  while (nodes.size() > tail + 1) {
    merge_moments(layout_, nodes[tail].moments, nodes[tail + 1].moments);
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(tail) + 1);
  }
  return nodes;
}

}  // namespace headlab
