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

MomentTree::MomentTree(const MomentLayout& layout, std::vector<Node> nodes,
                       std::optional<Extremes> extremes)
    : layout_(layout), nodes_(std::move(nodes)), extremes_(std::move(extremes)) {
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
  if (!extremes_) return;
  extremes_->for_each([&](const ExtremeList& list) {
    const auto in_whole = [&](const Extreme& one) { return one.replicate < whole_count(); };
    const bool none_beyond =
        std::ranges::all_of(list.all(), [&](const Extreme& one) { return one.replicate < count_; });
    if (!none_beyond ||
        std::ranges::count_if(list.all(), in_whole) > static_cast<std::ptrdiff_t>(max_extremes)) {
      throw std::invalid_argument("extremes are not those of a run of " + std::to_string(count_) +
                                  " replicates");
    }
  });
}

MomentTree::MomentTree(const MomentLayout& layout, const ReplicateRange& range)
    : layout_(layout), first_(range.first), total_(range.total) {
  const auto between_leaves = [&](std::uint64_t at) {
    return max_node(at) == 1 || at % leaf_replicates == 0 || at == range.total;
  };
  if (range.total == 0 || range.end() > range.total || !between_leaves(range.first) ||
      !between_leaves(range.end())) {
    throw std::invalid_argument("replicates " + std::to_string(range.first) + " to " +
                                std::to_string(range.end()) + " are not a range of a run of " +
                                std::to_string(range.total));
  }
}

MomentTree::MomentTree(const MomentLayout& layout, const ReplicateRange& range,
                       std::vector<Node> nodes, std::optional<Extremes> extremes)
    : MomentTree(layout, range) {
  for (Node& node : nodes) {
    if (node.first != end() || node.moments.count > range.end() - end() ||
        node.moments.mean.size() != layout_.statistics() ||
        node.moments.comoment.size() != layout_.comoments()) {
      throw std::invalid_argument("node at replicate " + std::to_string(node.first) +
                                  " is not one of the range");
    }
    append(std::move(node.moments));
  }
  extremes_ = std::move(extremes);
}

void MomentTree::join(const MomentTree& next) {
  if (next.first_ != end()) {
    throw std::invalid_argument("replicates from " + std::to_string(next.first_) +
                                " do not follow on those to " + std::to_string(end()));
  }
  join_after_gap(next);
}

void MomentTree::join_after_gap(const MomentTree& next) {
  const std::uint64_t last = nodes_.empty() ? 0 : nodes_.back().first + nodes_.back().moments.count;
  if (total_ == 0 || next.total_ != total_ || next.layout_ != layout_ || next.first_ < last) {
    throw std::invalid_argument("replicates from " + std::to_string(next.first_) +
                                " are not later ones of this run");
  }
  if (next.count_ == 0) return;
  if (!next.extremes_) {
    extremes_.reset();
  } else if (count_ == 0) {
    extremes_ = next.extremes_;
  } else if (extremes_) {
    // What comes before another range ends with a leaf: lists are of the whole leaves, and
    // those of a last leaf that is not full stay apart.
    const std::uint64_t whole_end = next.first_ + next.whole_count();
    Extremes whole = *next.extremes_, rest = *next.extremes_;
    whole.for_each([&](ExtremeList& list) { list.remove_from(whole_end); });
    rest.for_each([&](ExtremeList& list) { list.remove_before(whole_end); });
    extremes_->merge(whole);
    extremes_->merge(rest, max_kept_extremes);
  }
  const std::uint64_t size = max_node(0);
  for (const Node& node : next.nodes_) push(node, size);
  count_ += next.count_;
}

MomentTree MomentTree::whole_run() const {
  if (first_ != 0 || count_ != total_) {
    throw std::invalid_argument("a run of " + std::to_string(total_) + " replicates has " +
                                std::to_string(count_) + " of them");
  }
  return {layout_, nodes_, extremes_};
}

std::uint64_t MomentTree::whole_count() const {
  return max_node(end()) == 1 ? count_ : count_ - end() % leaf_replicates;
}

bool MomentTree::splits_draw(std::uint64_t replicates) const {
  return layout_.per_draw && replicates % leaf_replicates != 0;
}

MomentTree MomentTree::whole() const {
  MomentTree tree = *this;
  if (whole_count() < count_) tree.nodes_.pop_back();
  tree.count_ = whole_count();
  if (tree.extremes_) {
    tree.extremes_->for_each([&](ExtremeList& list) { list.remove_from(tree.end()); });
  }
  return tree;
}

std::optional<Extremes> MomentTree::extremes() const {
  std::optional<Extremes> all = extremes_;
  if (all) all->for_each([](ExtremeList& list) { list.truncate(max_extremes); });
  return all;
}

void MomentTree::add_extremes(const Extremes* of_node) {
  if (of_node == nullptr) {
    extremes_.reset();
  } else if (count_ == 0) {
    extremes_ = *of_node;
  } else if (extremes_) {
    extremes_->merge(*of_node, max_kept_extremes);
  }
}

void MomentTree::append(Moments moments) {
  const std::uint64_t before = max_node(count_);
  const std::uint64_t added = moments.count;
  const bool whole = std::has_single_bit(added) && added >= leaf_replicates;
  if (added == 0 || added > before || !(added <= leaf_replicates || whole) || splits_draw(added)) {
    throw std::invalid_argument("a node of " + std::to_string(added) + " replicates after " +
                                std::to_string(end()) + ": 1 to 8, or 8 2^j up to " +
                                std::to_string(before) + " can be appended");
  }
  // Only the last leaf of a run may be short.
  const bool cut_short = total_ > 0 && before > 1 && !whole && end() + added != total_;
  if (end() % (whole ? added : 1) != 0 || cut_short) {
    throw std::invalid_argument("a node of " + std::to_string(added) + " replicates after " +
                                std::to_string(end()) + " is not aligned to its size");
  }
  add_extremes(std::exchange(moments.extremes, nullptr).get());
  Node last{end(), std::move(moments)};
  count_ += last.moments.count;
  // The replicates of a last leaf that is not full stay apart from those before: whole() is without
  // them.
  if (whole_count() == count_ && extremes_) {
    extremes_->for_each([](ExtremeList& list) { list.truncate(max_extremes); });
  }
  const std::uint64_t size = max_node(count_);
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
                          left.first % (2 * half) == 0 && nodes_.back().first == left.first + half;
    if (!siblings || 2 * half > size) return;
    merge_moments(layout_, left.moments, nodes_.back().moments);
    nodes_.pop_back();
  }
}

std::vector<Node> MomentTree::jackknife_nodes() const {
  std::vector<Node> nodes = nodes_;
  if (total_ > 0) return nodes;
  const std::uint64_t size = node_replicates(layout_, count_);
  const auto tail = static_cast<std::size_t>(count_ / size);  // nodes before it are whole
  while (nodes.size() > tail + 1) {
    merge_moments(layout_, nodes[tail].moments, nodes[tail + 1].moments);
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(tail) + 1);
  }
  return nodes;
}

namespace {

/// The first `kept` of every `size` numbers.
std::vector<double> first_of_each(const std::vector<double>& numbers, std::size_t size,
                                  std::size_t kept) {
  std::vector<double> first;
  first.reserve(numbers.size() / size * kept);
  for (std::size_t at = 0; at < numbers.size(); at += size) {
    const auto from = numbers.begin() + static_cast<std::ptrdiff_t>(at);
    first.insert(first.end(), from, from + static_cast<std::ptrdiff_t>(kept));
  }
  return first;
}

}  // namespace

MomentTree MomentTree::without_controls() const {
  MomentTree plain = *this;
  plain.layout_.controls = ControlStatistics::none;
  if (plain.layout_ == layout_) return plain;
  for (Node& node : plain.nodes_) {
    node.moments.mean =
        first_of_each(node.moments.mean, layout_.per_query(), plain.layout_.per_query());
    node.moments.comoment = first_of_each(node.moments.comoment, layout_.comoments_per_query(),
                                          plain.layout_.comoments_per_query());
  }
  return plain;
}

}  // namespace headlab
