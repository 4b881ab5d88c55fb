// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "engine/files/sha256.h"
#include "engine/moments/estimates.h"
#include "engine/moments/layer_estimates.h"

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
  if (layout.mode == MomentMode::separate) {
    const auto& metrics = layer_metric_descriptions();
    for (std::size_t i = 0; i < layout.per_query(); ++i) names.push_back(metrics.at(i).name);
    return names;
  }
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
  if (!layout.controlled()) return names;
  for (std::size_t h = 0; h < layout.components(); ++h) {
    names.push_back("controlled_estimate_" + component_name(layout, h));
  }
  for (const auto& [g, l] : pairs_of(layout)) {
    names.push_back("controlled_noise_" + component_name(layout, g) + "_" +
                    component_name(layout, l));
  }
  names.emplace_back("controlled_ensemble");
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

constexpr const char* extremes_group = "extremes";
constexpr const char* error_name = "max_error";
constexpr const char* sample_size_name = "min_sample_size";

std::string replicate_name(const std::string& name) {
  return name + "_replicate";
}

/// Writes a list of each tree, [condition][extreme]: NaN and -1 where there is none.
void write_lists(const NetcdfGroup& group, const std::string& name, const std::string& key,
                 const std::vector<const ExtremeList*>& lists) {
  const std::size_t size = lists.size() * max_kept_extremes;
  std::vector<double> keys(size, std::numeric_limits<double>::quiet_NaN());
  std::vector<std::int64_t> replicates(size, -1);
  for (std::size_t c = 0; c < lists.size(); ++c) {
    if (lists[c] == nullptr) continue;
    for (std::size_t i = 0; i < lists[c]->all().size(); ++i) {
      keys[c * max_kept_extremes + i] = lists[c]->all()[i].key;
      replicates[c * max_kept_extremes + i] =
          static_cast<std::int64_t>(lists[c]->all()[i].replicate);
    }
  }
  group.write(name, {"condition", "extreme"}, {key}, keys);
  group.write(replicate_name(name), {"condition", "extreme"}, {"replicate of " + name}, replicates);
}

/// The same read back; empty lists where there is none.
std::vector<ExtremeList> read_lists(const NetcdfGroup& group, const std::string& name,
                                    ExtremeList::Kind kind, std::size_t conditions) {
  const std::vector<double> keys = group.doubles(name);
  const std::vector<std::int64_t> replicates = group.integers(replicate_name(name));
  const std::size_t length = group.dimension("extreme");
  if (keys.size() != conditions * length || replicates.size() != keys.size() ||
      length > max_kept_extremes) {
    throw NetcdfError(name + ": size does not fit the conditions");
  }
  std::vector<ExtremeList> lists(conditions, ExtremeList(kind));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (replicates[i] < 0) continue;
    if (!std::isfinite(keys[i])) throw NetcdfError(name + ": a replicate without a key");
    lists[i / length].add({keys[i], static_cast<std::uint64_t>(replicates[i])}, length);
  }
  return lists;
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

/// The ensemble with controls among the components of pairs.
constexpr std::int64_t controlled_ensemble_component = -1;

/// What the comoments are of.
void write_pairs(const NetcdfGroup& nodes, const MomentLayout& layout) {
  nodes.define_dimension("pair", layout.comoments_per_query());
  std::vector<std::int64_t> first_component, second_component;
  for (const auto& [g, l] : pairs_of(layout)) {
    first_component.push_back(static_cast<std::int64_t>(g));
    second_component.push_back(static_cast<std::int64_t>(l));
  }
  if (layout.controlled()) {
    first_component.push_back(controlled_ensemble_component);
    second_component.push_back(controlled_ensemble_component);
  }
  nodes.write("pair_first", {"pair"}, {"component g of a pair (g, l); -1: controlled_ensemble"},
              first_component);
  nodes.write("pair_second", {"pair"}, {"component l of a pair (g, l); -1: controlled_ensemble"},
              second_component);
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
  const bool of_layers = layout.mode == MomentMode::separate;
  if (!layout.per_draw && !of_layers) write_pairs(nodes, layout);

  nodes.write("condition", {"node"}, {"condition of a node, from 0"}, conditions);
  write("first", "first replicate of a node", [](Tree, const Node& node) { return node.first; });
  write("count", "replicates of a node", [](Tree, const Node& node) { return node.moments.count; });
  nodes.write("jackknife", {"node"}, {"jackknife group of a condition that a node belongs to"},
              jackknife_groups(trees));
  if (of_layers) {
    nodes.write("mean", {"node", "layer", "statistic"},
                {"mean of a statistic over the replicates of a node"},
                moments_of(trees, &Moments::mean));
    nodes.write("comoment", {"node", "layer", "statistic"},
                {"sum over the replicates of a node of (f - mean)^2"},
                moments_of(trees, &Moments::comoment));
    return;
  }
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

void write_extremes(const NetcdfGroup& group, const std::vector<NumberedTree>& trees) {
  std::vector<const ExtremeList*> errors, sample_sizes;
  for (const NumberedTree& one : trees) {
    const std::optional<Extremes>& extremes = one.tree->kept_extremes();
    errors.push_back(extremes ? &extremes->max_error : nullptr);
    sample_sizes.push_back(extremes && extremes->min_sample_size ? &*extremes->min_sample_size
                                                                 : nullptr);
  }
  const auto known = [](const ExtremeList* list) { return list != nullptr; };
  if (std::ranges::none_of(errors, known)) return;
  const NetcdfGroup of_extremes = group.define_group(extremes_group);
  of_extremes.define_dimension("extreme", max_kept_extremes);
  write_lists(of_extremes, error_name, "squared error of the ensemble, averaged over queries",
              errors);
  write_lists(of_extremes, sample_size_name, "least effective sample size of heads and queries",
              sample_sizes);
}

std::vector<std::optional<Extremes>> read_extremes(const NetcdfGroup& group,
                                                   std::size_t conditions) {
  std::vector<std::optional<Extremes>> all(conditions);
  if (!group.has_group(extremes_group)) return all;
  const NetcdfGroup of_extremes = group.find_group(extremes_group);
  const auto errors = read_lists(of_extremes, error_name, ExtremeList::Kind::largest, conditions);
  const auto sample_sizes =
      read_lists(of_extremes, sample_size_name, ExtremeList::Kind::least, conditions);
  for (std::size_t c = 0; c < conditions; ++c) {
    if (errors[c].all().empty()) continue;
    all[c].emplace();
    all[c]->max_error = errors[c];
    if (sample_sizes[c].all().empty()) {
      all[c]->min_sample_size.reset();
    } else {
      all[c]->min_sample_size = sample_sizes[c];
    }
  }
  return all;
}

}  // namespace headlab
