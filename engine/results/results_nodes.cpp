// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_nodes.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/sha256.h"
#include "engine/scenario/plan_fingerprint.h"

namespace headlab {
namespace {

std::string group_name(std::size_t condition) {
  char name[32];
  std::snprintf(name, sizeof name, "condition_%03zu", condition);
  return name;
}

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

/// SHA-256 of the numbers of nodes, because a file keeps no sums of its own.
std::string sum_of(const std::vector<Node>& nodes) {
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

void write_tree(const NetcdfGroup& group, const MomentTree& tree) {
  const MomentLayout& layout = tree.layout();
  const std::vector<Node>& nodes = tree.nodes();
  const auto queries = static_cast<std::size_t>(layout.queries);
  const std::size_t statistics = layout.per_query();
  const std::size_t pairs = layout.pairs();
  group.put_attribute("nodes_sha256", sum_of(nodes));
  group.define_dimension("node", nodes.size());
  group.define_dimension("statistic", statistics);
  group.define_dimension("pair", pairs);
  group.write("statistic", {"statistic"}, {"what a mean is of", ""}, statistic_names(layout));
  std::vector<std::int64_t> first_component, second_component;
  for (const auto& [g, l] : pairs_of(layout)) {
    first_component.push_back(static_cast<std::int64_t>(g));
    second_component.push_back(static_cast<std::int64_t>(l));
  }
  group.write("pair_first", {"pair"}, {"component g of a pair (g, l)"}, first_component);
  group.write("pair_second", {"pair"}, {"component l of a pair (g, l)"}, second_component);

  std::vector<std::int64_t> first, count, jackknife, empty, narrow;
  const std::vector<Node> wholes = tree.jackknife_nodes();
  for (const Node& node : nodes) {
    const auto after = std::upper_bound(
        wholes.begin(), wholes.end(), node.first,
        [](std::uint64_t replicate, const Node& whole) { return replicate < whole.first; });
    jackknife.push_back(after - wholes.begin() - 1);
    first.push_back(static_cast<std::int64_t>(node.first));
    count.push_back(static_cast<std::int64_t>(node.moments.count));
    empty.push_back(static_cast<std::int64_t>(node.moments.windows.empty));
    narrow.push_back(static_cast<std::int64_t>(node.moments.windows.narrow));
  }
  group.write("node_first", {"node"}, {"first replicate of a node"}, first);
  group.write("node_count", {"node"}, {"replicates of a node"}, count);
  group.write("node_jackknife", {"node"}, {"jackknife group a node belongs to"}, jackknife);
  group.write("empty_windows", {"node"}, {"windows without a kernel value above 2^-126"}, empty);
  group.write("narrow_windows", {"node"}, {"windows of effective sample size below 2"}, narrow);

  group.define_doubles("mean", {"node", "query", "statistic"},
                       {"mean of a statistic over the replicates of a node"});
  group.define_doubles("comoment", {"node", "query", "pair"},
                       {"sum over the replicates of a node of (f_g - mean_g)(f_l - mean_l)"});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    group.put("mean", {{i, 0, 0}, {1, queries, statistics}}, nodes[i].moments.mean);
    group.put("comoment", {{i, 0, 0}, {1, queries, pairs}}, nodes[i].moments.comoment);
  }
}

/// Reads the layout of a group back from its attributes and dimensions.
MomentLayout read_layout(const NetcdfGroup& group) {
  const std::string estimator = group.text_attribute("estimator");
  const std::string moments = group.text_attribute("moments");
  const bool conditional = estimator == name_of(Estimator::conditional);
  const bool pairwise = moments == name_of(MomentMode::pairwise);
  if (!conditional && estimator != name_of(Estimator::plain)) {
    throw NetcdfError("estimator: is \"" + estimator + "\"");
  }
  if (!pairwise && moments != name_of(MomentMode::aggregate)) {
    throw NetcdfError("moments: is \"" + moments + "\"");
  }
  const MomentLayout layout = {.queries = static_cast<int>(group.dimension("query")),
                               .heads = static_cast<int>(group.dimension("head")),
                               .mode = pairwise ? MomentMode::pairwise : MomentMode::aggregate,
                               .conditional = conditional};
  if (group.dimension("statistic") != layout.per_query() ||
      group.dimension("pair") != layout.pairs()) {
    throw NetcdfError("statistics and pairs do not fit the heads");
  }
  return layout;
}

std::vector<Node> read_tree(const NetcdfGroup& group, const MomentLayout& layout) {
  const auto queries = static_cast<std::size_t>(layout.queries);
  const std::size_t size = group.dimension("node");
  const auto first = group.integers("node_first");
  const auto count = group.integers("node_count");
  const auto empty = group.integers("empty_windows");
  const auto narrow = group.integers("narrow_windows");
  if (first.size() != size || count.size() != size || empty.size() != size ||
      narrow.size() != size) {
    throw NetcdfError("node: variables of different lengths");
  }
  std::vector<Node> nodes(size);
  for (std::size_t i = 0; i < size; ++i) {
    nodes[i].first = static_cast<std::uint64_t>(first[i]);
    Moments& moments = nodes[i].moments;
    moments.count = static_cast<std::uint64_t>(count[i]);
    moments.mean = group.doubles("mean", {{i, 0, 0}, {1, queries, layout.per_query()}});
    moments.comoment = group.doubles("comoment", {{i, 0, 0}, {1, queries, layout.pairs()}});
    moments.windows = {static_cast<std::uint64_t>(empty[i]), static_cast<std::uint64_t>(narrow[i])};
  }
  // Older files have none.
  if (group.has_attribute("nodes_sha256") &&
      sum_of(nodes) != group.text_attribute("nodes_sha256")) {
    throw NetcdfError("the nodes are damaged: they have another sum");
  }
  return nodes;
}

/// What projects keys and queries, and where learned heads came along. Heads that every replicate
/// learns anew are not kept.
void write_heads(const NetcdfGroup& group, const ConditionResult& condition) {
  const Plan& plan = condition.plan;
  const std::vector<std::string> of_heads = {"head", "coordinate", "dim"};
  if (plan.learning) {
    group.put_attribute("learned", "per_replicate");
    return;
  }
  group.write("projections", of_heads, {"projections W_h"}, plan.projections);
  if (!plan.query_projections.empty()) {
    group.write("query_projections", of_heads, {"projections of the queries"},
                plan.query_projections);
  }
  const LearnedHeads* learned = learned_heads(condition.scenario);
  if (learned == nullptr) return;
  group.put_attribute("learned", "once");
  group.put_attribute("learned_steps", static_cast<std::int64_t>(learned->fit.steps));
  group.put_attribute("learned_points", static_cast<std::int64_t>(learned->points));
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::int64_t> step;
  std::vector<double> batch_error, held_out_error, chordal, weights, keys, queries;
  std::vector<double> unused;
  for (const FitCheck& check : learned->fit.course) {
    step.push_back(static_cast<std::int64_t>(check.step));
    batch_error.push_back(check.batch_error.value_or(none));
    held_out_error.push_back(check.held_out_error.value_or(none));
    chordal.push_back(plan.heads > 1 ? chordal_gradient(check.heads, unused) : none);
    weights.insert(weights.end(), check.heads.weights.begin(), check.heads.weights.end());
    keys.insert(keys.end(), check.heads.keys.begin(), check.heads.keys.end());
    queries.insert(queries.end(), check.heads.queries.begin(), check.heads.queries.end());
  }
  const std::vector<std::string> of_course = {"check", "head", "coordinate", "dim"};
  group.define_dimension("check", step.size());
  group.write("course_step", {"check"}, {"steps done"}, step);
  group.write("course_batch_error", {"check"}, {"squared error over batches since the last check"},
              batch_error);
  group.write("course_held_out_error", {"check"}, {"squared error over the points held out"},
              held_out_error);
  group.write("course_chordal", {"check"}, {"chordal index of the heads"}, chordal);
  group.write("course_weights", {"check", "head"}, {"head weights a_h"}, weights);
  group.write("course_projections", of_course, {"projections W_h"}, keys);
  if (!queries.empty()) {
    group.write("course_query_projections", of_course, {"projections of the queries"}, queries);
  }
}

}  // namespace

const char* name_of(Estimator estimator) {
  return estimator == Estimator::conditional ? "conditional" : "plain";
}

const char* name_of(MomentMode moments) {
  return moments == MomentMode::pairwise ? "pairwise" : "aggregate";
}

void write_nodes(const NetcdfGroup& root, std::size_t number, const ConditionResult& condition) {
  const NetcdfGroup group = root.define_group(group_name(number));
  const Plan& plan = condition.plan;
  group.put_attribute("estimator", name_of(plan.estimator));
  group.put_attribute("moments", name_of(plan.moments));
  group.put_attribute("parameters", to_json(condition.scenario.parameters));
  group.put_attribute("plan_sha256", plan_sha256(plan));
  group.put_attribute("seed", static_cast<std::int64_t>(plan.seed));
  group.put_attribute("n", static_cast<std::int64_t>(plan.n));
  group.put_attribute("k", std::int64_t{plan.k});
  group.put_attribute("replicates", static_cast<std::int64_t>(condition.tree.count()));
  group.define_dimension("query", static_cast<std::size_t>(plan.queries));
  group.define_dimension("head", static_cast<std::size_t>(plan.heads));
  group.define_dimension("coordinate", static_cast<std::size_t>(plan.d));
  group.define_dimension("dim", static_cast<std::size_t>(plan.k));
  group.write("head_weights", {"head"}, {"head weights a_h"}, plan.head_weights);
  write_heads(group, condition);
  group.write("x", {"query", "coordinate"}, {"query points"}, plan.query_points);
  group.write("truth", {"query"}, {"regression function m(x)"}, plan.truth);
  write_tree(group, condition.tree);
}

StoredCondition read_nodes(const NetcdfGroup& root, std::size_t number) {
  const NetcdfGroup group = root.find_group(group_name(number));
  const MomentLayout layout = read_layout(group);
  return {
      .parameters = group.text_attribute("parameters"),
      .plan_sha256 = group.has_attribute("plan_sha256") ? group.text_attribute("plan_sha256") : "",
      .layout = layout,
      .nodes = read_tree(group, layout),
      .head_weights = group.doubles("head_weights"),
      .query_points = group.doubles("x"),
      .truth = group.doubles("truth")};
}

StoredCondition read_nodes(const std::string& path, std::size_t condition) {
  try {
    const NetcdfInput file(path);
    return read_nodes(file.root(), condition);
  } catch (const NetcdfError& error) {
    throw Refused(path + ": no headlab results for condition " + std::to_string(condition) + " (" +
                  error.what() + ")");
  }
}

}  // namespace headlab
