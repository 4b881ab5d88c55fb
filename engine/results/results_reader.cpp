// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_reader.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/results/condition_record.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/results_nodes.h"
#include "kernels/stack/metrics.h"

namespace headlab {
namespace {

/// The one of `all` that has this name.
template <class Choice>
Choice named(const char* variable, const std::string& name, std::initializer_list<Choice> all) {
  for (const Choice choice : all) {
    if (name == name_of(choice)) return choice;
  }
  throw NetcdfError(std::string(variable) + ": is \"" + name + "\"");
}

/// The length of a dimension that layouts have as an int.
int layout_length(const NetcdfGroup& group, const char* dimension) {
  constexpr std::size_t most = std::size_t{1} << 30;
  const std::size_t length = group.dimension(dimension);
  if (length < 1 || length > most) {
    throw NetcdfError(std::string(dimension) + ": is " + std::to_string(length) + " long");
  }
  return static_cast<int>(length);
}

MomentLayout stored_layout(const std::string& estimator, const std::string& moments,
                           const NetcdfGroup& group, bool per_draw = false,
                           bool controlled = false) {
  Plan plan;
  plan.queries = layout_length(group, "query");
  plan.heads = layout_length(group, "head");
  plan.estimator = named("estimator", estimator, {Estimator::conditional, Estimator::plain});
  plan.moments = named("moments", moments, {MomentMode::pairwise, MomentMode::aggregate});
  plan.redraws = per_draw;
  MomentLayout layout = plan.kept_layout();
  if (controlled) layout.controls = ControlStatistics::controlled;
  return layout;
}

Controls read_controls(const NetcdfGroup& group, std::size_t row, std::size_t queries,
                       std::size_t heads) {
  const auto read = [&](const char* name, const char* axes, auto& numbers, const char*) {
    const auto [lengths, of_pairs, size] = control_shape(axes, queries, heads);
    std::vector<std::size_t> start(lengths.size() + 1), count = {1};
    start[0] = row;
    count.insert(count.end(), lengths.begin(), lengths.end());
    for (std::size_t i = 0; const double number : group.doubles(name, {start, count})) {
      const std::size_t place = i++ / size;
      // Matrices have a pair of heads at two places.
      if (of_pairs && place / heads % heads > place % heads) continue;
      if (name == std::string_view(use_of_controls_variable) &&
          !(number >= 0 && number < static_cast<double>(heads))) {
        throw NetcdfError(std::string(name) + ": names a head that there is not");
      }
      numbers.push_back(static_cast<typename std::decay_t<decltype(numbers)>::value_type>(number));
    }
  };
  Controls controls;
  for_each_control_variable(controls, read);
  return controls;
}

void require_lengths(const NetcdfGroup& nodes, const MomentLayout& layout) {
  if (layout.mode == MomentMode::separate) {
    if (nodes.dimension("statistic") == layout.per_query()) return;
    throw NetcdfError("statistics do not fit the layers");
  }
  const std::size_t statistics = layout.per_draw ? draw_statistics : layout.per_query();
  if (nodes.dimension("statistic") != statistics ||
      (!layout.per_draw && nodes.dimension("pair") != layout.comoments_per_query())) {
    throw NetcdfError("statistics and pairs do not fit the heads");
  }
}

/// Nodes begin .. end - 1 of a group; the vectors hold a number of every node.
std::vector<Node> read_node_range(const NetcdfGroup& group, const MomentLayout& layout,
                                  std::size_t begin, std::size_t end,
                                  const std::vector<std::int64_t>& first,
                                  const std::vector<std::int64_t>& count,
                                  const std::vector<std::int64_t>& empty,
                                  const std::vector<std::int64_t>& narrow) {
  if (begin == end) return {};
  const auto queries = static_cast<std::size_t>(layout.queries);
  const std::size_t statistics = layout.statistics();
  const std::size_t comoments = layout.comoments();
  const std::size_t count_read = end - begin;
  const std::vector<double> means =
      layout.per_draw
          ? group.doubles("mean", {{begin, 0}, {count_read, statistics}})
          : group.doubles("mean", {{begin, 0, 0}, {count_read, queries, layout.per_query()}});
  const std::vector<double> all_comoments =
      layout.per_draw
          ? std::vector<double>()
          : group.doubles("comoment",
                          {{begin, 0, 0}, {count_read, queries, layout.comoments_per_query()}});
  auto part = [](const std::vector<double>& all, std::size_t i, std::size_t size) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(i * size);
    return std::vector<double>(at, at + static_cast<std::ptrdiff_t>(size));
  };
  std::vector<Node> nodes(count_read);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t n = begin + i;
    nodes[i].first = static_cast<std::uint64_t>(first[n]);
    Moments& moments = nodes[i].moments;
    moments.count = static_cast<std::uint64_t>(count[n]);
    moments.mean = part(means, i, statistics);
    moments.comoment = part(all_comoments, i, comoments);
    moments.windows = {static_cast<std::uint64_t>(empty[n]), static_cast<std::uint64_t>(narrow[n])};
  }
  return nodes;
}

void require_size(std::size_t size, std::initializer_list<std::size_t> sizes, const char* axis) {
  if (std::ranges::any_of(sizes, [&](std::size_t other) { return other != size; })) {
    throw NetcdfError(std::string(axis) + ": variables of different lengths");
  }
}

}  // namespace

ResultsReader::ResultsReader(const NetcdfGroup& root)
    : root_(root),
      version_(root.integer_attribute("format_version")),
      conditions_(root.dimension("condition")) {
  if (version_ < 1 || version_ > results_format_version) {
    throw NetcdfError("format version " + std::to_string(version_) + " is unknown");
  }
  if (version_ == 1 || conditions_ == 0) return;
  if (root.has_attribute(no_nodes_attribute)) {
    throw NetcdfError("it was written with --nodes none, and has figures alone");
  }
  parameters_ = root.texts("parameters");
  plan_sums_ = root.texts("plan_sha256");
  if (root.has_variable("estimator")) estimators_ = root.texts("estimator");
  moments_ = root.texts("moments");
  dimensions_ = root.integers("d");
  if (root.has_variable("redraw")) redraws_ = root.texts("redraw");
  require_size(conditions_,
               {parameters_.size(), plan_sums_.size(),
                estimators_.empty() ? conditions_ : estimators_.size(), moments_.size(),
                dimensions_.size(), redraws_.empty() ? conditions_ : redraws_.size()},
               "condition");
  for (const ResultsBlock& block : results_blocks(root)) add_group(block);
}

void ResultsReader::add_group(const ResultsBlock& block) {
  const NetcdfGroup& group = block.group;
  const std::vector<std::size_t>& numbers = block.conditions;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    places_[numbers[row]] = {groups_.size(), row};
  }
  const std::size_t one = numbers[0];
  const bool of_layers = moments_[one] == name_of(MomentMode::separate);
  const bool per_draw = !redraws_.empty() && !redraws_[one].empty();
  Group& added = groups_.emplace_back(Group{
      .group = group,
      .nodes = group.find_group("nodes"),
      .layout = of_layers
                    ? stack_layout(layout_length(group, "layer") - 1)
                    : stored_layout(estimators_.empty() ? "" : estimators_[one], moments_[one],
                                    group, per_draw, group.has_variable(controls_variable)),
      .coordinates = of_layers ? 0 : group.dimension("coordinate")});
  const NetcdfGroup& nodes = added.nodes;
  require_lengths(nodes, added.layout);
  added.condition = nodes.integers("condition");
  added.first = nodes.integers("first");
  added.count = nodes.integers("count");
  const std::size_t size = nodes.dimension("node");
  added.empty = of_layers ? std::vector<std::int64_t>(size) : nodes.integers("empty_windows");
  added.narrow = of_layers ? std::vector<std::int64_t>(size) : nodes.integers("narrow_windows");
  require_size(size,
               {added.condition.size(), added.first.size(), added.count.size(), added.empty.size(),
                added.narrow.size()},
               "node");
  added.extremes = read_extremes(group, numbers.size());
  if (!std::ranges::is_sorted(added.condition)) throw NetcdfError("condition: is not in order");
}

StoredCondition ResultsReader::read(std::size_t number) const {
  if (version_ == 1) return read_version_1(number);
  const auto place = places_.find(number);
  if (place == places_.end()) throw NetcdfError("no such condition");
  const Group& group = groups_[place->second.group];
  const std::size_t row = place->second.row;
  const auto queries = static_cast<std::size_t>(group.layout.queries);
  const auto heads = static_cast<std::size_t>(group.layout.heads);
  const auto d = static_cast<std::size_t>(dimensions_[number]);
  const bool of_layers = group.layout.mode == MomentMode::separate;
  if (!of_layers && d > group.coordinates) throw NetcdfError("d: is larger than the points");
  const auto [begin, end] = std::equal_range(group.condition.begin(), group.condition.end(),
                                             static_cast<std::int64_t>(number));
  StoredCondition stored{
      .parameters = parameters_[number],
      .plan_sha256 = plan_sums_[number],
      .layout = group.layout,
      .nodes = read_node_range(group.nodes, group.layout,
                               static_cast<std::size_t>(begin - group.condition.begin()),
                               static_cast<std::size_t>(end - group.condition.begin()), group.first,
                               group.count, group.empty, group.narrow),
      .extremes = group.extremes[row],
      .head_weights = {},
      .query_points = {},
      .truth = {}};
  if (!of_layers) {
    stored.head_weights = group.group.doubles("head_weights", {{row, 0}, {1, heads}});
    stored.query_points = group.group.doubles("x", {{row, 0, 0}, {1, queries, d}});
    stored.truth = group.group.doubles("truth", {{row, 0}, {1, queries}});
  }
  if (group.layout.controlled() && group.group.has_variable(use_of_controls_variable)) {
    stored.controls = read_controls(group.group, row, queries, heads);
  }
  return stored;
}

StoredCondition ResultsReader::read_version_1(std::size_t number) const {
  char name[32];
  std::snprintf(name, sizeof name, "condition_%03zu", number);
  const NetcdfGroup group = root_.find_group(name);
  const MomentLayout layout =
      stored_layout(group.text_attribute("estimator"), group.text_attribute("moments"), group);
  require_lengths(group, layout);
  const auto first = group.integers("node_first");
  const auto count = group.integers("node_count");
  const auto empty = group.integers("empty_windows");
  const auto narrow = group.integers("narrow_windows");
  const std::size_t size = group.dimension("node");
  require_size(size, {first.size(), count.size(), empty.size(), narrow.size()}, "node");
  auto text = [&](const char* attribute) {
    return group.has_attribute(attribute) ? group.text_attribute(attribute) : "";
  };
  StoredCondition stored{
      .parameters = group.text_attribute("parameters"),
      .plan_sha256 = text("plan_sha256"),
      .layout = layout,
      .nodes = read_node_range(group, layout, 0, size, first, count, empty, narrow),
      .extremes = {},
      .head_weights = group.doubles("head_weights"),
      .query_points = group.doubles("x"),
      .truth = group.doubles("truth")};
  const auto queries = static_cast<std::size_t>(layout.queries);
  if (stored.head_weights.size() != static_cast<std::size_t>(layout.heads) ||
      stored.truth.size() != queries || stored.query_points.size() % queries != 0) {
    throw NetcdfError("weights and queries do not fit the heads");
  }
  return stored;
}

StoredCondition read_nodes(const std::string& path, std::size_t number) {
  try {
    const NetcdfInput file(path);
    return ResultsReader(file.root()).read(number);
  } catch (const NetcdfError& error) {
    throw InvalidInput(path + ": no headlab results for " + numbered_condition(number) + " (" +
                       error.what() + ")");
  }
}

}  // namespace headlab
