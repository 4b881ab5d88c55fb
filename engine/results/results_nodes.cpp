// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_nodes.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/files/sha256.h"
#include "engine/moments/estimates.h"

namespace headlab {
namespace {

/// Component g of the layout: a head, or the ensemble after them.
std::string component_name(const MomentLayout& layout, std::size_t g) {
  return g < static_cast<std::size_t>(layout.heads) ? std::to_string(g) : "ensemble";
}

/// (g, l) of every pair, in the order of the layout.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const MomentLayout& layout) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t g = 0; g < layout.components(); ++g) {
    const std::size_t end = layout.pairwise() ? layout.components() : g + 1;
    for (std::size_t l = g; l < end; ++l) pairs.emplace_back(g, l);
  }
  return pairs;
}

std::vector<std::string> statistic_names(const MomentLayout& layout) {
  std::vector<std::string> names;
  if (layout.per_draw) {
    for (const char* name : draw_statistic_names()) names.emplace_back(name);
    return names;
  }
  for (std::size_t g = 0; g < layout.components(); ++g) {
    names.push_back("estimate_" + component_name(layout, g));
  }
  if (layout.conditional) {
    for (const auto& [g, l] : pairs_of(layout)) {
      names.push_back("noise_" + component_name(layout, g) + "_" + component_name(layout, l));
    }
  }
  if (layout.has_alignment()) names.emplace_back("alignment");
  return names;
}

/// One number of every node, in the order of the trees.
template <class Read>
std::vector<std::int64_t> of_nodes(const std::vector<NumberedTree>& trees, const Read& read) {
  std::vector<std::int64_t> numbers;
  for (const NumberedTree& one : trees) {
    for (const Node& node : one.tree->nodes()) {
      numbers.push_back(static_cast<std::int64_t>(read(one, node)));
    }
  }
  return numbers;
}

/// Moments of every node, to be put together when the file is saved.
std::function<std::vector<double>()> moments_of(const std::vector<NumberedTree>& trees,
                                                std::vector<double> Moments::*moments) {
  return [=] {
    std::vector<double> all;
    for (const NumberedTree& one : trees) {
      for (const Node& node : one.tree->nodes()) {
        const std::vector<double>& part = node.moments.*moments;
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    return all;
  };
}

/// Jackknife group of each node: pieces of an unfinished last node belong to one.
std::vector<std::int64_t> jackknife_groups(const std::vector<NumberedTree>& trees) {
  std::vector<std::int64_t> groups;
  for (const NumberedTree& one : trees) {
    const std::vector<Node> wholes = one.tree->jackknife_nodes();
    for (const Node& node : one.tree->nodes()) {
      const auto after = std::ranges::upper_bound(wholes, node.first, {}, &Node::first);
      groups.push_back(after - wholes.begin() - 1);
    }
  }
  return groups;
}

/// What the comoments are of.
void write_pairs(const NetcdfGroup& nodes, const MomentLayout& layout) {
  nodes.define_dimension("pair", layout.pairs());
  std::vector<std::int64_t> first_component, second_component;
  for (const auto& [g, l] : pairs_of(layout)) {
    first_component.push_back(static_cast<std::int64_t>(g));
    second_component.push_back(static_cast<std::int64_t>(l));
  }
  nodes.write("pair_first", {"pair"}, {"component g of a pair (g, l)"}, first_component);
  nodes.write("pair_second", {"pair"}, {"component l of a pair (g, l)"}, second_component);
}

}  // namespace

std::string nodes_sha256(const std::vector<Node>& nodes) {
  Sha256 sum;
  for (const Node& node : nodes) {
    const std::uint64_t counts[] = {node.first, node.moments.count, node.moments.windows.empty,
                                    node.moments.windows.narrow};
    sum.add(std::as_bytes(std::span(counts)));
    sum.add(std::as_bytes(std::span(node.moments.mean)));
    sum.add(std::as_bytes(std::span(node.moments.comoment)));
  }
  return sum.digest();
}

void write_nodes(const NetcdfGroup& group, const std::vector<NumberedTree>& trees) {
  const MomentLayout& layout = trees.at(0).tree->layout();
  const NetcdfGroup nodes = group.define_group("nodes");
  using Tree = const NumberedTree&;
  auto write = [&](const char* name, const char* long_name, const auto& read) {
    nodes.write(name, {"node"}, {long_name}, of_nodes(trees, read));
  };
  const std::vector<std::int64_t> conditions =
      of_nodes(trees, [](Tree tree, const Node&) { return tree.condition; });
  nodes.define_dimension("node", conditions.size());
  const std::vector<std::string> statistics = statistic_names(layout);
  nodes.define_dimension("statistic", statistics.size());
  nodes.write("statistic", {"statistic"}, {"what a mean is of", ""}, statistics);
  if (!layout.per_draw) write_pairs(nodes, layout);

  nodes.write("condition", {"node"}, {"condition of a node, from 0"}, conditions);
  write("first", "first replicate of a node", [](Tree, const Node& node) { return node.first; });
  write("count", "replicates of a node", [](Tree, const Node& node) { return node.moments.count; });
  nodes.write("jackknife", {"node"}, {"jackknife group of a condition that a node belongs to"},
              jackknife_groups(trees));
  write("empty_windows", "windows without a kernel value above 2^-126",
        [](Tree, const Node& node) { return node.moments.windows.empty; });
  write("narrow_windows", "windows of effective sample size below 2",
        [](Tree, const Node& node) { return node.moments.windows.narrow; });
  if (layout.per_draw) {
    nodes.write("mean", {"node", "statistic"}, {"mean of a figure over the draws of a node"},
                moments_of(trees, &Moments::mean));
    return;
  }
  nodes.write("mean", {"node", "query", "statistic"},
              {"mean of a statistic over the replicates of a node"},
              moments_of(trees, &Moments::mean));
  nodes.write("comoment", {"node", "query", "pair"},
              {"sum over the replicates of a node of (f_g - mean_g)(f_l - mean_l)"},
              moments_of(trees, &Moments::comoment));
}

}  // namespace headlab
