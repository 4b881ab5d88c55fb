// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_netcdf.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>

#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/results/condition_record.h"
#include "engine/results/netcdf_fields.h"
#include "engine/results/results_id.h"
#include "engine/results/results_nodes.h"
#include "engine/results/results_scenario.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "kernels/stack/stack.h"

namespace headlab {
namespace {

void write_provenance(const NetcdfGroup& root, const Scenario& scenario, const RunResult& result,
                      const Provenance& program) {
  write_scenario(root, scenario, program);
  root.put_attribute("format_version", std::int64_t{results_format_version});
  root.put_attribute("backend", result.machine.backend);
  root.put_attribute("simd", result.machine.simd);
  root.put_attribute("device", result.machine.device);
  root.put_attribute("threads", std::int64_t{result.machine.threads});
  root.put_attribute("results_id", results_id(result));
  root.put_attribute("complete", std::int64_t{result.outcome.complete ? 1 : 0});
  root.put_attribute("conditions_planned", static_cast<std::int64_t>(scenario.conditions.size()));
}

/// What a file says of a condition besides the summary.
struct FileRecord {
  const ConditionResult& one;

  template <class Visitor>
  void fields(Visitor& visit) const {
    const Plan& plan = one.plan;
    visit("replicates_planned", one.condition->replicates, "training sets asked for");
    visit("jackknife_nodes", one.estimates.nodes(), "nodes behind the standard errors");
    visit("seed", plan.seed, "seed of the simulation");
    visit("d", plan.d, "dimension of the design");
    if (plan.stack) {
      visit("heads", plan.stack->heads, "number of heads H");
      visit("moments", name_of(one.tree.layout().mode), "which moments are kept");
      visit_sums(visit);
      return;
    }
    visit("heads", plan.heads, "number of heads H");
    visit("k", plan.k, "per-head dimension d_k");
    visit("queries", plan.queries, "number of queries Q");
    visit("moments", name_of(plan.moments), "which moments are kept");
    visit_sums(visit);
    if (one.found.heads) {
      visit("fresh_key_error", one.found.heads->fresh_key_error,
            "squared error over the points held out, with keys of another training set");
    }
    if (one.found.controls) visit_controls(visit, one.found.controls->controls);
    // Heads that every replicate learns are not kept, nor those of a draw.
    if (plan.learning || redraws(*one.condition->subspaces)) return;
    const std::vector<std::size_t> shape = {static_cast<std::size_t>(plan.heads),
                                            static_cast<std::size_t>(plan.d),
                                            static_cast<std::size_t>(plan.k)};
    const FieldText axes{.axes = "head coordinate dim"};
    visit("projections", shaped(plan.projections, shape), "projections W_h", axes);
    if (plan.query_projections.empty()) return;
    visit("query_projections", shaped(plan.query_projections, shape), "projections of the queries",
          axes);
  }

 private:
  /// Those of pairs as matrices of heads.
  template <class Visitor>
  void visit_controls(Visitor& visit, Controls controls) const {
    controls.use = control_use(one).value_or(ControlUse());
    const auto put = [&](const char* name, const char* axes, const auto& numbers, const char* doc) {
      const ControlShape shape = control_shape(axes, static_cast<std::size_t>(one.plan.queries),
                                               static_cast<std::size_t>(one.plan.heads));
      std::vector<double> all(numbers.begin(), numbers.end());
      if (shape.of_pairs) all = matrices(all, shape.size);
      visit(name, shaped(all, shape.lengths), doc, {.axes = axes});
    };
    for_each_control_variable(controls, put);
  }
  /// [Q][P][size] as [Q][H][H][size], the pair (h, l) at both places.
  std::vector<double> matrices(const std::vector<double>& of_pairs, std::size_t size) const {
    const auto heads = static_cast<std::size_t>(one.plan.heads);
    const std::size_t pairs = heads * (heads + 1) / 2;
    std::vector<double> all;
    for (std::size_t first = 0; first < of_pairs.size(); first += pairs * size) {
      for (std::size_t at = 0; at < heads * heads; ++at) {
        const std::size_t h = std::min(at / heads, at % heads);
        const std::size_t l = std::max(at / heads, at % heads);
        const std::size_t pair = h * heads - h * (h + 1) / 2 + l;
        for (std::size_t c = 0; c < size; ++c) all.push_back(of_pairs[first + pair * size + c]);
      }
    }
    return all;
  }

  template <class Visitor>
  void visit_sums(Visitor& visit) const {
    visit("plan_sha256", plan_sha256(one.plan), "fingerprint of the numbers that were simulated");
    visit("nodes_sha256", nodes_sha256(one.tree.nodes()), "SHA-256 of the nodes");
  }
};

/// A check of the fit of learned heads.
struct CheckRecord {
  std::size_t condition;
  const FitCheck& check;

  template <class Visitor>
  void fields(Visitor& visit) const {
    const HeadParameters& heads = check.heads;
    std::vector<double> unused;
    visit("condition", condition, "condition whose heads are learned, from 0");
    visit("step", check.step, "steps done");
    visit("batch_error", check.batch_error, "squared error over batches since the last check");
    visit("held_out_error", check.held_out_error, "squared error over the points held out");
    visit("chordal",
          heads.heads > 1 ? chordal_gradient(heads, unused)
                          : std::numeric_limits<double>::quiet_NaN(),
          "chordal index of the heads");
    visit("head_weights", shaped(heads.weights), "head weights a_h", {.axes = "head"});
    const std::vector<std::size_t> shape = {static_cast<std::size_t>(heads.heads),
                                            static_cast<std::size_t>(heads.d),
                                            static_cast<std::size_t>(heads.k)};
    const FieldText axes{.axes = "head coordinate dim"};
    visit("projections", shaped(heads.keys, shape), "projections W_h", axes);
    if (heads.queries.empty()) return;
    visit("query_projections", shaped(heads.queries, shape), "projections of the queries", axes);
  }
};

std::string layout_group_name(std::size_t layout) {
  return "layout_" + std::to_string(layout);
}

using Lengths = std::map<std::string, std::size_t>;

/// Conditions of one moment layout.
struct LayoutGroup {
  MomentLayout layout;
  std::vector<std::size_t> conditions = {};
};

std::vector<LayoutGroup> layout_groups(const RunResult& result) {
  std::vector<LayoutGroup> groups;
  for (std::size_t c = 0; c < result.conditions.size(); ++c) {
    const MomentLayout& layout = result.conditions[c].tree.layout();
    auto group = std::ranges::find(groups, layout, &LayoutGroup::layout);
    if (group == groups.end()) group = groups.insert(groups.end(), {layout});
    group->conditions.push_back(c);
  }
  return groups;
}

/// Lengths of the axes of a group, which longer ones of some conditions decide.
Lengths lengths_of(const LayoutGroup& group, const RunResult& result) {
  if (group.layout.mode == MomentMode::separate) {
    return {{"condition", group.conditions.size()},
            {"layer", static_cast<std::size_t>(group.layout.queries)}};
  }
  int d = 0, k = 0;
  for (const std::size_t c : group.conditions) {
    d = std::max(d, result.conditions[c].plan.d);
    k = std::max(k, result.conditions[c].plan.k);
  }
  const auto heads = static_cast<std::size_t>(group.layout.heads);
  Lengths lengths = {{"condition", group.conditions.size()},
                     {"query", static_cast<std::size_t>(group.layout.queries)},
                     {"head", heads},
                     {"head_2", heads},
                     {"coordinate", static_cast<std::size_t>(d)},
                     {"dim", static_cast<std::size_t>(k)}};
  if (group.layout.controlled()) {
    lengths["estimate_control"] = estimate_controls;
    lengths["noise_control"] = noise_controls;
    lengths["bound"] = 2;
  }
  return lengths;
}

/// How heads that were learned once came along, of all conditions of a group.
void write_history(const NetcdfGroup& group, const Lengths& lengths, const LayoutGroup& of,
                   const RunResult& result) {
  std::vector<CheckRecord> records;
  for (const std::size_t c : of.conditions) {
    const LearnedHeads* learned = result.conditions[c].found.heads.get();
    if (learned == nullptr) continue;
    for (const FitCheck& check : learned->fit.history) records.push_back({c, check});
  }
  if (records.empty()) return;
  write_records(
      group.define_group("history"), "check", records,
      [](const CheckRecord& record, auto& visit) { record.fields(visit); }, lengths);
}

void write_conditions(const NetcdfGroup& root, const RunResult& result,
                      const std::vector<ConditionIndices>& indices, bool nodes) {
  const std::vector<LayoutGroup> groups = layout_groups(result);
  const bool one_layout = groups.size() == 1;
  FieldTable of_root(one_layout ? lengths_of(groups[0], result)
                                : Lengths{{"condition", result.conditions.size()}});
  std::vector<NumberedTree> trees;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Lengths lengths = lengths_of(groups[g], result);
    FieldTable of_group(lengths);
    FieldTable& table = one_layout ? of_root : of_group;
    trees.clear();
    for (std::size_t row = 0; row < groups[g].conditions.size(); ++row) {
      const std::size_t c = groups[g].conditions[row];
      const ConditionResult& one = result.conditions[c];
      const ConditionIndices of_condition = c < indices.size() ? indices[c] : ConditionIndices{};
      NetcdfFields visit({&of_root, FieldTable::Position{{"condition"}, {c}}},
                         {&table, FieldTable::Position{{"condition"}, {row}}});
      visit_condition(one, of_condition, visit);
      FileRecord{one}.fields(visit);
      if (one.difference) visit("difference", *one.difference, "difference between conditions");
      trees.push_back({c, &one.tree});
    }
    const NetcdfGroup group = one_layout ? root : root.define_group(layout_group_name(g));
    for (const auto& [axis, length] : lengths) {
      if (!one_layout || axis != "condition") group.define_dimension(axis, length);
    }
    if (!one_layout) {
      group.write(
          "condition", {"condition"}, {"number of a condition, from 0"},
          std::vector<std::int64_t>(groups[g].conditions.begin(), groups[g].conditions.end()));
      of_group.write(group);
    }
    if (nodes) {
      write_nodes(group, trees);
      write_extremes(group, trees);
    }
    write_history(group, lengths, groups[g], result);
  }
  of_root.write(root);
}

}  // namespace

ControlShape control_shape(const std::string& axes, std::size_t queries, std::size_t heads) {
  ControlShape shape;
  for (const std::string& axis : axes_of(axes)) {
    shape.lengths.push_back(axis == "query"              ? queries
                            : axis.starts_with("head")   ? heads
                            : axis == "estimate_control" ? estimate_controls
                            : axis == "noise_control"    ? noise_controls
                                                         : 2);
    if (shape.of_pairs) shape.size = shape.lengths.back();
    shape.of_pairs = shape.of_pairs || axis == "head_2";
  }
  return shape;
}

std::vector<ResultsBlock> results_blocks(const NetcdfGroup& root) {
  const std::size_t conditions = root.dimension("condition");
  std::vector<ResultsBlock> blocks;
  if (root.has_dimension("query") || root.has_dimension("layer")) {
    blocks.push_back({root, std::vector<std::size_t>(conditions)});
    std::iota(blocks[0].conditions.begin(), blocks[0].conditions.end(), std::size_t{0});
  }
  for (std::size_t g = 0; root.has_group(layout_group_name(g)); ++g) {
    ResultsBlock& block =
        blocks.emplace_back(ResultsBlock{root.find_group(layout_group_name(g)), {}});
    for (const std::int64_t number : block.group.integers("condition")) {
      if (number < 0 || static_cast<std::size_t>(number) >= conditions) {
        throw NetcdfError("condition: has " + std::to_string(number) + " of " +
                          std::to_string(conditions));
      }
      block.conditions.push_back(static_cast<std::size_t>(number));
    }
    if (block.conditions.empty()) throw NetcdfError("condition: has no numbers");
  }
  return blocks;
}

void put_results(const NetcdfGroup& root, const Scenario& scenario, const RunResult& result,
                 const std::vector<ConditionIndices>& indices, const Provenance& program,
                 bool nodes) {
  root.define_dimension("condition", result.conditions.size());
  write_provenance(root, scenario, result, program);
  if (result.precision) write_precision(root, *result.precision, result.outcome.complete);
  if (!result.missing_shards.empty()) {
    root.put_attribute(missing_shards_attribute, result.missing_shards);
  }
  if (result.share) write_share(root, *result.share);
  if (!result.difference_to.empty()) root.put_attribute("difference_to", result.difference_to);
  std::vector<const Condition*> conditions;
  for (const ConditionResult& one : result.conditions) conditions.push_back(one.condition.get());
  if (!nodes) root.put_attribute(no_nodes_attribute, std::int64_t{1});
  write_conditions(root, result, indices, nodes);
  write_swept(root, "condition", scenario.swept, conditions);
}

void write_results(const std::string& path, const Scenario& scenario, const RunResult& result,
                   const std::vector<ConditionIndices>& indices, const Provenance& program,
                   bool nodes) {
  try {
    NetcdfImage image;
    put_results(image.root(), scenario, result, indices, program, nodes);
    image.save(path);
  } catch (const NetcdfError& error) {
    throw RunFailed(path + ": cannot be written (" + error.what() + ")");
  }
}

}  // namespace headlab
