// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/scenario.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "engine/files/error.h"
#include "engine/files/input_file.h"
#include "engine/files/key_names.h"
#include "engine/scenario/condition_reader.h"
#include "engine/scenario/file_laws.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/stack/stack_setting.h"
#include "engine/scenario/sweep.h"

namespace headlab {

namespace {

constexpr std::size_t max_scenario_bytes = std::size_t{64} << 20;

/// Conditions read between two questions whether to stop.
constexpr std::size_t stop_interval = 16;

/// Different stages of a sweep that later conditions are compared with.
constexpr std::size_t max_known_stages = 64;

/// A --set argument, applied.
struct Setting {
  Location location;
  std::string key;
};

Setting setting_of(const std::string& argument) {
  const Location location{one_line("--set " + argument, 200)};
  const auto equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    reject(location, "", "needs KEY=VALUE - as in --set run.replicates=1000");
  }
  std::string key = argument.substr(0, equals);
  while (!key.empty() && key.back() == ' ') key.pop_back();
  key.erase(0, key.find_first_not_of(' '));
  split_path(key, location);
  return {location, key};
}

Setting apply(Value& root, const std::string& argument) {
  const Setting setting = setting_of(argument);
  const std::string value = argument.substr(argument.find('=') + 1);
  set_value(root, setting.key, parse_value(value, setting.key, setting.location));
  return setting;
}

Condition read_tree(const Value& parameters, DataFiles& files, const ReadHooks& hooks) {
  const bool of_depth = is_study_of_depth(parameters);
  if (of_depth && !hooks.depth) {
    const char* key = parameters.find("tokens") ? "tokens" : "layers";
    reject(parameters.find(key)->location, key,
           "is for studies of depth, which this command does not take (allowed: headlab run, "
           "theory, validate)");
  }
  return of_depth ? read_study_of_depth(parameters, files)
                  : read_study_of_regression(parameters, files, hooks.simulates);
}

/// Refuses values that no scenario could have where a sweep writes over them: they mislead who
/// reads the file, and wait for the day the sweep is taken out. Whether they go with the others is
/// not asked: the sweep may change several that belong together.
void reject_unfit_overwritten(const Sweep& sweep, DataFiles& files, const ReadHooks& hooks) {
  for (const Value& scenario : sweep.with_overwritten()) {
    try {
      read_tree(scenario, files, hooks);
    } catch (const UnfitValue&) {
      throw;
    } catch (const InvalidInput&) {
      continue;
    }
  }
}

/// Reads condition `index`. Where the file alone does not explain a refusal, because the sweep
/// changed something else, the refusal says which condition it is about.
Condition read_condition(const std::shared_ptr<const Sweep>& sweep, std::size_t index,
                         DataFiles& files, const ReadHooks& hooks) {
  const Value parameters = sweep->condition(index);
  const auto& keys = sweep->keys();
  std::vector<const Value*> values;
  for (const std::string& key : keys) values.push_back(value_at(parameters, key));
  try {
    Condition condition = read_tree(parameters, files, hooks);
    condition.parameters = Parameters(sweep, index);
    for (const Value* value : values) condition.swept.push_back(to_toml(*value));
    return condition;
  } catch (const InvalidInput& error) {
    const std::string line = error.what();
    std::string condition;
    for (std::size_t a = 0; a < values.size(); ++a) {
      if (line.starts_with(values[a]->location.text() + ": ")) throw;
      condition += (a == 0 ? "" : ", ") + keys[a] + " = " + one_line(to_toml(*values[a]), 60);
    }
    if (index == 0) throw;
    throw InvalidInput(line + " (in the condition " + condition + ")");
  }
}

/// Lets a condition share the stages of an earlier one that are equal to its own.
void share_stages(Condition& condition, std::vector<SharedStages>& known) {
  const MechanismStages& stages = condition.mechanism;
  if (!any_stage(stages)) return;
  const auto equal =
      std::ranges::find_if(known, [&](const MechanismStages& other) { return other == stages; });
  if (equal != known.end()) {
    condition.mechanism = *equal;
  } else if (known.size() < max_known_stages) {
    known.push_back(condition.mechanism);
  }
}

/// A sweep writes over what was set there: refused rather than silently undone.
void reject_swept(const std::vector<Setting>& settings, const Sweep& sweep) {
  for (const auto& setting : settings) {
    const auto path = split_path(setting.key, setting.location);
    const std::string* key = sweep.key_that_undoes(path);
    if (key == nullptr) continue;
    const bool is_part = split_path(*key, setting.location).size() > path.size();
    reject(setting.location, setting.key,
           (is_part ? "holds " + *key + ", which the scenario sweeps - leave it out, or"
                    : std::string("is swept by the scenario -")) +
               " set the sweep itself: 'sweep.\"" + *key + "\"=[...]'");
  }
}

/// Unrolls the sweep of a document with the text `text`.
Scenario unrolled(Value root, const std::string& text, const std::string& source,
                  const std::vector<std::string>& sets, DataFiles files, const ReadHooks& hooks) {
  std::vector<Setting> settings;
  for (const auto& argument : sets) {
    const Setting setting = setting_of(argument);
    require_whole_key(root, setting.key, setting.location, setting.key);
    settings.push_back(apply(root, argument));
  }
  const auto sweep = std::make_shared<const Sweep>(std::move(root));
  reject_swept(settings, *sweep);

  Scenario scenario{
      .file = source, .text = text, .sets = sets, .swept = sweep->keys(), .conditions = {}};
  std::vector<SharedStages> known_stages;
  scenario.conditions.reserve(sweep->size());
  for (std::size_t index = 0; index < sweep->size(); ++index) {
    if (index % stop_interval == stop_interval - 1 && hooks.stop && hooks.stop()) throw Stopped();
    scenario.conditions.push_back(read_condition(sweep, index, files, hooks));
    share_stages(scenario.conditions.back(), known_stages);
    if (index == 0) reject_unfit_overwritten(*sweep, files, hooks);
    if (hooks.report) {
      hooks.report(static_cast<double>(index + 1) / static_cast<double>(sweep->size()));
    }
  }
  scenario.inputs = files.paths();
  return scenario;
}

}  // namespace

void reject_undone(const std::vector<std::string>& sets) {
  std::vector<Setting> settings;
  std::vector<std::vector<std::string>> paths;
  for (const std::string& argument : sets) {
    const Setting setting = setting_of(argument);
    std::vector<std::string> path = split_path(setting.key, setting.location);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (paths[i].size() < path.size()) continue;
      if (!std::equal(path.begin(), path.end(), paths[i].begin())) continue;
      reject(setting.location, setting.key,
             "undoes " + settings[i].location.text() + " - leave one of them out");
    }
    settings.push_back(setting);
    paths.push_back(std::move(path));
  }
}

Value scenario_tree(const Scenario& scenario) {
  Value root = parse_toml(scenario.text, scenario.file);
  for (const std::string& argument : scenario.sets) apply(root, argument);
  return root;
}

Scenario parse_scenario(const std::string& text, const std::string& source,
                        const std::vector<std::string>& sets, const std::string& directory,
                        const ReadHooks& hooks) {
  return unrolled(parse_toml(text, source), text, source, sets, DataFiles(directory), hooks);
}

Scenario read_scenario(Value document, const std::string& source,
                       const std::vector<std::string>& sets, const std::string& directory,
                       const DataArrays& arrays, const ReadHooks& hooks) {
  const std::string text = to_toml_document(document);
  return unrolled(std::move(document), text, source, sets, DataFiles(directory, arrays), hooks);
}

Scenario read_scenario(const std::string& file, const std::vector<std::string>& sets,
                       const ReadHooks& hooks) {
  const auto directory = std::filesystem::path(file).parent_path().string();
  Scenario scenario =
      parse_scenario(read_file(file, max_scenario_bytes), file, sets, directory, hooks);
  scenario.inputs.push_back(file);
  return scenario;
}

}  // namespace headlab
