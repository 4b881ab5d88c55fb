// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_scenario.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <variant>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/key_names.h"
#include "engine/files/table_file.h"
#include "engine/moments/measures.h"
#include "engine/results/netcdf_fields.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/host.h"

namespace headlab {
namespace {

std::string utc_now() {
  const std::time_t now = wall_clock();
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// `text` as the name of a variable: heads_dim, frequency_1_0; of labels angle_rad.
std::string variable_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (c == '.' || c == '[' || c == ' ')
      name += '_';
    else if (c != ']' && c != '"' && c != '(' && c != ')')
      name += c;
  }
  return name;
}

bool is_label(const std::string& key) {
  return key.starts_with(std::string(labels_section) + ".");
}

std::string coordinate_name(const NetcdfGroup& root, const std::vector<std::string>& keys,
                            std::size_t s) {
  const auto taken = [&](const std::string& name) {
    return root.has_variable(name) || root.has_dimension(name);
  };
  const std::string name = variable_name(short_key(keys, s));
  if (!taken(name) || keys[s].find('.') == std::string::npos) return name;
  const std::string whole = variable_name(keys[s]);
  return taken(whole) ? "swept_" + whole : whole;
}

/// Attributes of a file with targets.
constexpr auto list_counts = [](auto& precision, const auto& visit) {
  visit("until_most", precision.most);
  visit("until_first", precision.first);
  visit("until_conditions", precision.conditions);
};

/// Variables of its looks.
constexpr auto list_look = [](auto& look, auto& visit) {
  visit("look_replicates", look.replicates, "training sets at a look at the standard errors");
  visit("look_condition", look.condition, "condition with the largest MCSE over target, from 0");
  visit("look_target", look.target, "target that it is of, from 0");
  visit("look_undefined", look.undefined, "figures that are undefined");
  visit("look_ratio", look.ratio, "the largest MCSE over target");
};

constexpr const char* shard_attribute = "shard";

/// Attributes of a file with a share.
constexpr auto list_share = [](auto& share, const auto& visit) {
  visit(shard_attribute, share.shard);
  visit("shards", share.shards);
  visit("shard_chosen_by", share.chosen_by);
  visit("shard_study", share.study);
  visit("shard_begin", share.begin);
  visit("shard_end", share.end);
  visit("shard_leaves", share.leaves);
  visit("shard_together", share.together);
  visit("shard_directory", share.directory);
};

/// Variables of its parts.
constexpr auto list_part = [](auto& part, auto& visit) {
  visit("part_condition", part.condition, "condition of the scenario, from 0");
  visit("part_first", part.range.first, "first replicate of the shard");
  visit("part_replicates", part.range.replicates, "replicates of the shard");
  visit("part_total", part.range.total, "replicates of the condition in all shards");
  visit("part_work", part.work, "cost of a replicate in kernel weights");
};

}  // namespace

std::string short_key(const std::vector<std::string>& keys, std::size_t s) {
  if (keys[s].find('.') == std::string::npos) return "swept_" + keys[s];
  const std::string last = last_part(keys[s]);
  const bool alone = std::ranges::count(keys, last, last_part) == 1;
  if (is_label(keys[s]) && alone) return last;
  return variable_name(alone ? last : keys[s]);
}

void write_scenario(const NetcdfGroup& root, const Scenario& scenario, const Provenance& program) {
  root.put_attribute("Conventions", "CF-1.8");
  root.put_attribute("title", scenario.conditions.empty() ? "" : scenario.conditions.front().name);
  root.put_attribute("aims", scenario.conditions.empty() ? "" : scenario.conditions.front().aims);
  root.put_attribute("source", "headlab " + program.version);
  root.put_attribute("created", utc_now());
  root.put_attribute("headlab_version", program.version);
  root.put_attribute("git", program.git);
  root.put_attribute("compiler", program.compiler);
  root.put_attribute("build_type", program.build_type);
  // Where a sweep varies the seed it stands in the variable `seed` alone.
  const bool one_seed = std::all_of(scenario.conditions.begin(), scenario.conditions.end(),
                                    [&](const Condition& condition) {
                                      return condition.seed == scenario.conditions.front().seed;
                                    });
  if (one_seed && !scenario.conditions.empty()) {
    root.put_attribute("seed", static_cast<std::int64_t>(scenario.conditions.front().seed));
  }
  root.put_attribute("scenario_file", scenario.file);
  root.put_attribute("scenario_text", scenario.text);
  std::string sets;
  for (const std::string& set : scenario.sets) sets += (sets.empty() ? "" : "\n") + set;
  root.put_attribute("set_arguments", sets);
  std::string tables;
  for (const std::string& line : tables_read(scenario.inputs)) {
    tables += (tables.empty() ? "" : "\n") + line;
  }
  if (!tables.empty()) root.put_attribute("tables_read", tables);
  if (scenario.conditions.empty() || scenario.conditions.front().measures.empty()) return;
  std::string measures;
  for (const std::string& name : names_of(scenario.conditions.front().measures)) {
    measures += (measures.empty() ? "" : " ") + name;
  }
  root.put_attribute(measures_attribute, measures);
}

std::string swept_name(const std::string& key) {
  // A whole section, as `heads`, bears the name of another variable.
  if (key.find('.') == std::string::npos) return "swept_" + key;
  return is_label(key) ? variable_name(key) : key;
}

void write_swept(const NetcdfGroup& root, const std::string& dimension,
                 const std::vector<std::string>& keys,
                 std::span<const Condition* const> conditions) {
  std::string names;
  std::vector<std::string> coordinates;
  for (std::size_t s = 0; s < keys.size(); ++s) {
    const std::string& key = keys[s];
    const std::string name = swept_name(key);
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    std::vector<std::string> texts;
    for (const Condition* condition : conditions) {
      texts.push_back(condition->swept.at(s));
      const Value parameters = condition->parameters.tree();
      const Value* value = value_at(parameters, key);
      if (value == nullptr) continue;
      if (const auto* integer = std::get_if<std::int64_t>(&value->data)) {
        integers.push_back(*integer);
        numbers.push_back(static_cast<double>(*integer));
      } else if (const auto* number = std::get_if<double>(&value->data)) {
        numbers.push_back(*number);
      } else if (const auto* text = std::get_if<std::string>(&value->data)) {
        texts.back() = *text;
      }
    }
    const std::string long_name = "swept parameter " + key;
    names += (s == 0 ? "" : " ") + name;
    coordinates.push_back(coordinate_name(root, keys, s));
    std::vector<std::string> written = {coordinates.back()};
    if (name != coordinates.back()) written.push_back(name);
    for (const std::string& variable : written) {
      if (integers.size() == texts.size()) {
        root.write(variable, {dimension}, {long_name}, integers);
      } else if (numbers.size() == texts.size()) {
        root.write(variable, {dimension}, {long_name}, numbers);
      } else {
        root.write(variable, {dimension}, {long_name, ""}, texts);
      }
    }
  }
  if (!coordinates.empty()) root.put_coordinates(dimension, coordinates);
  root.put_attribute("swept", names);
}

void write_precision(const NetcdfGroup& root, const Precision& precision, bool complete) {
  root.put_attribute("until", until_text(precision.targets));
  list_counts(precision, PutAttributes{root});
  root.put_attribute("until_looks", static_cast<std::int64_t>(precision.looks.size()));
  if (complete) root.put_attribute("target_met", std::int64_t{precision.met() ? 1 : 0});
  if (!precision.looks.empty()) write_records(root, "look", precision.looks, list_look);
}

std::optional<Precision> read_precision(const NetcdfGroup& root) {
  if (!root.has_attribute("until")) return std::nullopt;
  Precision precision;
  list_counts(precision, TakeAttributes{root});
  try {
    precision.targets = parse_until(root.text_attribute("until"));
  } catch (const InvalidInput& error) {
    throw NetcdfError(error.what());
  }
  std::uint64_t looks = 0;
  TakeAttributes{root}("until_looks", looks);
  if (looks == 0) return precision;
  precision.looks = read_records<Look>(root, "look", list_look);
  std::uint64_t before = 0;
  for (const Look& look : precision.looks) {
    if (look.replicates <= before || !(look.ratio >= 0) ||
        look.target >= precision.targets.size()) {
      throw NetcdfError("look: is none that a run takes");
    }
    before = look.replicates;
  }
  return precision;
}

void write_share(const NetcdfGroup& root, const Share& share) {
  list_share(share, PutAttributes{root});
  root.put_attribute("shard_parts", static_cast<std::int64_t>(share.parts.size()));
  if (!share.parts.empty()) write_records(root, "part", share.parts, list_part);
}

std::optional<Share> read_share(const NetcdfGroup& root) {
  if (!root.has_attribute(shard_attribute)) return std::nullopt;
  Share share;
  list_share(share, TakeAttributes{root});
  if (share.shard < 1 || share.shard > share.shards || share.begin > share.end ||
      share.end > share.leaves || share.together < 1) {
    throw NetcdfError("its share is none");
  }
  std::uint64_t parts = 0;
  TakeAttributes{root}("shard_parts", parts);
  if (parts == 0) return share;
  share.parts = read_records<SharePart>(root, "part", list_part);
  if (share.parts.size() != parts) throw NetcdfError("part: variables of different lengths");
  return share;
}

}  // namespace headlab
