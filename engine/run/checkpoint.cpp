// SPDX-License-Identifier: Apache-2.0
#include "engine/run/checkpoint.h"

#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/words.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/results_reader.h"
#include "engine/results/results_scenario.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

constexpr const char* advice =
    " - choose another folder, or write --overwrite instead to replace the results there";

[[noreturn]] void reject_resume(const std::string& path, const std::string& problem) {
  throw InvalidInput("--resume: " + path + ": " + problem + advice);
}

/// Parameters that do not change what a replicate is (claims and measures are about its figures),
/// and paths: what is in a file, the sum of the plan tells.
bool is_free(const std::string& key) {
  return key == "run.replicates" || key == "scenario" || key.starts_with("scenario.") ||
         key == "claim" || key == "measures" || key.starts_with("measures.") ||
         key.ends_with(".path");
}

/// The first key whose value differs, with both values (null: not given).
struct Difference {
  std::string key;
  Value there;
  Value here;
};
std::optional<Difference> difference(const Value& there, const Value& here,
                                     const std::string& key = "") {
  if (is_free(key)) return std::nullopt;
  if (!there.is<Value::Members>() || !here.is<Value::Members>()) {
    if (there == here) return std::nullopt;
    return Difference{key, there, here};
  }
  std::set<std::string> keys;
  for (const Value* side : {&there, &here}) {
    for (const Value::Entry& one : members_of(*side)) keys.insert(one.key);
  }
  for (const std::string& name : keys) {
    const std::string path = key.empty() ? name : key + "." + name;
    const auto found = difference(member(there, name), member(here, name), path);
    if (found) return found;
  }
  return std::nullopt;
}

std::string value_text(const Value& value) {
  return value.is<Value::Null>() ? "not given" : one_line(to_json(value), 100);
}

CheckpointCondition read_condition(const std::string& path, const ResultsReader& results,
                                   std::size_t number, const Condition& condition,
                                   const ReplicateRange* range) {
  StoredCondition stored = results.read(number);
  if (stored.nodes.empty()) {
    return {.tree = MomentTree(stored.layout)};
  }
  const std::string name = numbered_condition(number);
  const std::optional<Value> there = parse_json(stored.parameters);
  if (!there) throw NetcdfError("parameters: are not JSON");
  const auto changed = difference(*there, parse_json(to_json(condition.parameters.tree())).value());
  if (changed) {
    reject_resume(path, name + ": " + changed->key + " was " + value_text(changed->there) +
                            " and is " + value_text(changed->here));
  }
  std::string sum = stored.plan_sha256;
  CheckpointCondition begun{.tree = stored_tree(std::move(stored), range),
                            .plan_sha256 = std::move(sum)};
  if (begun.tree.count() > condition.replicates) {
    throw InvalidInput("--resume: " + path + ": " + name + " has " +
                       counted(begun.tree.count(), "replicate") + " already, more than the " +
                       grouped(condition.replicates) + " asked for - ask for at least as many");
  }
  return begun;
}

/// The shard has the share that this scenario has under its number.
bool is_same_share(const std::optional<Share>& there, const Share& here) {
  return there && there->study == here.study && there->begin == here.begin &&
         there->end == here.end && there->parts == here.parts;
}

}  // namespace

std::string other_program(const NetcdfGroup& root, const Provenance& program) {
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"headlab_version", program.version},
      {"git", program.git},
      {"compiler", program.compiler},
      {"build_type", program.build_type}};
  for (const auto& [name, here] : parts) {
    const std::string there = root.text_attribute(name);
    if (there != here) return name + " " + one_line(there, 100) + ", this one is " + here;
  }
  return {};
}

MomentTree stored_tree(StoredCondition stored, const ReplicateRange* range) {
  // Metrics of layers may be undefined. Damage shows in the sum of the nodes.
  const bool may_be_undefined = stored.layout.mode == MomentMode::separate;
  for (const Node& node : stored.nodes) {
    if (may_be_undefined) break;
    for (const std::vector<double>* numbers : {&node.moments.mean, &node.moments.comoment}) {
      for (const double number : *numbers) {
        if (!std::isfinite(number)) throw std::invalid_argument("numbers that are not finite");
      }
    }
  }
  if (range) {
    return {stored.layout, *range, std::move(stored.nodes), std::move(stored.extremes)};
  }
  return {stored.layout, std::move(stored.nodes), std::move(stored.extremes)};
}

std::uint64_t Checkpoint::replicates() const {
  std::uint64_t sum = 0;
  for (const CheckpointCondition& condition : conditions) sum += condition.tree.count();
  return sum;
}

double Checkpoint::seconds() const {
  double sum = 0;
  for (const CheckpointCondition& condition : conditions) sum += condition.seconds;
  return sum;
}

Checkpoint read_checkpoint(const std::string& path, const Scenario& scenario,
                           const Provenance& program, const Share* share) {
  try {
    const NetcdfInput file(path);
    const NetcdfGroup root = file.root();
    Checkpoint begun{.path = path,
                     .machine = Machine{.backend = root.text_attribute("backend"),
                                        .simd = root.text_attribute("simd"),
                                        .device = root.text_attribute("device")},
                     .conditions = {},
                     .precision = read_precision(root)};
    if (const std::string other = other_program(root, program); !other.empty()) {
      reject_resume(path, "is of another headlab (" + other + ")");
    }
    if (root.has_attribute(missing_shards_attribute)) {
      reject_resume(path, "was merged without " +
                              one_line(root.text_attribute(missing_shards_attribute), 100) +
                              ", and has gaps that no run fills");
    }
    const std::optional<Share> there = read_share(root);
    if (share && there && there->study == share->study &&
        std::pair(there->shard, there->shards) != std::pair(share->shard, share->shards)) {
      reject_resume(path,
                    "holds " + shard_text(*there) + " of this study, not " + shard_text(*share));
    }
    if (share && !is_same_share(there, *share)) {
      reject_resume(path, "is a shard of another scenario, seed or number of replicates");
    }
    if (!share && there) reject_resume(path, "is a shard, which --shard resumes");
    if (root.has_attribute(no_nodes_attribute)) {
      reject_resume(path, "was written with --nodes none, and has no nodes to resume from");
    }
    const ResultsReader results(root);
    const std::size_t conditions = results.conditions();
    if (conditions == 0) return begun;
    const std::vector<double> seconds = root.doubles("seconds");
    const std::vector<std::int64_t> replicates = root.integers("replicates");
    if (seconds.size() != conditions || replicates.size() != conditions) {
      throw NetcdfError("condition: variables of different lengths");
    }
    for (std::size_t i = 0; i < conditions; ++i) {
      if (i >= scenario.conditions.size()) {
        // A checkpoint has those that were not begun as well.
        if (replicates[i] == 0) continue;
        reject_resume(path, "has " + counted(i + 1, "condition") + " or more, the scenario has " +
                                std::to_string(scenario.conditions.size()));
      }
      begun.conditions.push_back(read_condition(path, results, i, scenario.conditions[i],
                                                share ? &share->parts[i].range : nullptr));
      if (std::isfinite(seconds[i])) begun.conditions[i].seconds = seconds[i];
    }
    return begun;
  } catch (const NetcdfDamage& damage) {
    reject_resume(path, damage.what());
  } catch (const NetcdfError& error) {
    reject_resume(path, std::string("no headlab results (") + error.what() + ")");
  } catch (const std::invalid_argument&) {
    reject_resume(path, "is damaged");
  }
}

void require_same_backend(const Checkpoint& begun, const Machine& machine) {
  auto name = [](const Machine& m) {
    return m.text() + (m.backend == "cuda" ? " on " + m.device : "");
  };
  const std::string there = name(begun.machine);
  const std::string here = name(machine);
  if (there == here) return;
  reject_resume(begun.path,
                "was computed by " + one_line(there, 100) + ", this run would be by " + here);
}

CheckpointCondition restore(Checkpoint* begun, std::size_t number, const Plan& plan) {
  CheckpointCondition none{.tree = MomentTree(plan.kept_layout())};
  if (begun == nullptr || number >= begun->conditions.size()) return none;
  CheckpointCondition& condition = begun->conditions[number];
  if (condition.tree.count() == 0) return none;
  if (condition.plan_sha256 != plan_sha256(plan) || condition.tree.layout() != plan.kept_layout()) {
    reject_resume(begun->path,
                  numbered_condition(number) + " had other numbers: a data file was edited");
  }
  return std::exchange(condition, none);
}

}  // namespace headlab
