// SPDX-License-Identifier: Apache-2.0
#include "engine/run/resume.h"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/netcdf_file.h"
#include "engine/results/results_reader.h"
#include "engine/scenario/plan_fingerprint.h"

namespace headlab {
namespace {

using Json = nlohmann::json;

constexpr const char* anew =
    " - choose another folder, or leave --resume out to replace the results there";

[[noreturn]] void refuse_resume(const std::string& path, const std::string& problem) {
  throw Refused("--resume: " + path + ": " + problem + anew);
}

/// Parameters that do not change what a replicate is, and paths: what is in a file, the sum of the
/// plan tells.
bool is_free(const std::string& key) {
  return key == "run.replicates" || key == "scenario" || key.starts_with("scenario.") ||
         key.ends_with(".path");
}

/// The first key whose value differs, with both values (null: not given).
struct Difference {
  std::string key;
  Json there;
  Json here;
};
std::optional<Difference> difference(const Json& there, const Json& here,
                                     const std::string& key = "") {
  if (is_free(key)) return std::nullopt;
  if (!there.is_object() || !here.is_object()) {
    if (there == here) return std::nullopt;
    return Difference{key, there, here};
  }
  Json keys = there;
  keys.update(here);
  for (const auto& [name, unused] : keys.items()) {
    const std::string path = key.empty() ? name : key + "." + name;
    const auto found = difference(there.value(name, Json()), here.value(name, Json()), path);
    if (found) return found;
  }
  return std::nullopt;
}

std::string value_text(const Json& value) {
  return value.is_null() ? "not given" : one_line(value.dump(), 100);
}

void require_same_program(const std::string& path, const NetcdfGroup& root,
                          const Provenance& program) {
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"headlab_version", program.version},
      {"git", program.git},
      {"compiler", program.compiler},
      {"build_type", program.build_type}};
  for (const auto& [name, here] : parts) {
    const std::string there = root.text_attribute(name);
    if (there == here) continue;
    refuse_resume(path, "is of another headlab (" + name + " " + one_line(there, 100) +
                            ", this one is " + here + ")");
  }
}

MomentTree tree_of(StoredCondition stored) {
  for (const Node& node : stored.nodes) {
    for (const std::vector<double>* numbers : {&node.moments.mean, &node.moments.comoment}) {
      for (const double number : *numbers) {
        if (!std::isfinite(number)) throw std::invalid_argument("numbers that are not finite");
      }
    }
  }
  return {stored.layout, std::move(stored.nodes)};
}

BegunCondition read_condition(const std::string& path, const ResultsReader& results,
                              std::size_t number, const Scenario& scenario) {
  StoredCondition stored = results.read(number);
  if (stored.nodes.empty()) {
    return {.tree = MomentTree(stored.layout)};
  }
  const std::string name = "condition " + std::to_string(number + 1);
  const auto changed =
      difference(Json::parse(stored.parameters), Json::parse(to_json(scenario.parameters)));
  if (changed) {
    refuse_resume(path, name + ": " + changed->key + " was " + value_text(changed->there) +
                            " and is " + value_text(changed->here));
  }
  std::string sum = stored.plan_sha256;
  BegunCondition begun{.tree = tree_of(std::move(stored)), .plan_sha256 = std::move(sum)};
  if (begun.tree.count() > scenario.replicates) {
    throw Refused("--resume: " + path + ": " + name + " has " + std::to_string(begun.tree.count()) +
                  " replicates already, more than the " + std::to_string(scenario.replicates) +
                  " asked for - ask for at least as many");
  }
  return begun;
}

}  // namespace

std::uint64_t BegunRun::replicates() const {
  std::uint64_t sum = 0;
  for (const BegunCondition& condition : conditions) sum += condition.tree.count();
  return sum;
}

double BegunRun::seconds() const {
  double sum = 0;
  for (const BegunCondition& condition : conditions) sum += condition.seconds;
  return sum;
}

BegunRun read_begun(const std::string& path, const Study& study, const Provenance& program) {
  try {
    const NetcdfInput file(path);
    const NetcdfGroup root = file.root();
    BegunRun begun{.path = path,
                   .machine = {.backend = root.text_attribute("backend"),
                               .simd = root.text_attribute("simd"),
                               .device = root.text_attribute("device")},
                   .conditions = {}};
    require_same_program(path, root, program);
    const ResultsReader results(root);
    const std::size_t conditions = results.conditions();
    if (conditions == 0) return begun;
    const std::vector<double> seconds = root.doubles("seconds");
    const std::vector<std::int64_t> replicates = root.integers("replicates");
    if (seconds.size() != conditions || replicates.size() != conditions) {
      throw NetcdfError("condition: variables of different lengths");
    }
    for (std::size_t i = 0; i < conditions; ++i) {
      if (i >= study.conditions.size()) {
        // A checkpoint has those that were not begun as well.
        if (replicates[i] == 0) continue;
        refuse_resume(path, "has " + std::to_string(i + 1) + " conditions or more, the study has " +
                                std::to_string(study.conditions.size()));
      }
      begun.conditions.push_back(read_condition(path, results, i, study.conditions[i]));
      if (std::isfinite(seconds[i])) begun.conditions[i].seconds = seconds[i];
    }
    return begun;
  } catch (const NetcdfError& error) {
    refuse_resume(path, std::string("no headlab results (") + error.what() + ")");
  } catch (const Json::exception&) {
    refuse_resume(path, "is damaged");
  } catch (const std::invalid_argument&) {
    refuse_resume(path, "is damaged");
  }
}

void require_same_backend(const BegunRun& begun, const Machine& machine) {
  auto name = [](const Machine& m) {
    return m.backend + (m.simd == "none" ? "" : "/" + m.simd) +
           (m.backend == "cuda" ? " on " + m.device : "");
  };
  const std::string there = name(begun.machine);
  const std::string here = name(machine);
  if (there == here) return;
  refuse_resume(begun.path,
                "was computed by " + one_line(there, 100) + ", this run would be by " + here);
}

BegunCondition take_begun(BegunRun* begun, std::size_t number, const Plan& plan) {
  BegunCondition none{.tree = MomentTree(plan.layout())};
  if (begun == nullptr || number >= begun->conditions.size()) return none;
  BegunCondition& condition = begun->conditions[number];
  if (condition.tree.count() == 0) return none;
  if (condition.plan_sha256 != plan_sha256(plan) || condition.tree.layout() != plan.layout()) {
    refuse_resume(begun->path, "condition " + std::to_string(number + 1) +
                                   " had other numbers: a data file was edited");
  }
  return std::exchange(condition, none);
}

}  // namespace headlab
