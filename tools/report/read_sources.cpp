// SPDX-License-Identifier: Apache-2.0
#include "tools/report/read_sources.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/folder.h"
#include "engine/files/foreign_files.h"
#include "engine/files/input_file.h"
#include "engine/files/json_sum.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/words.h"
#include "engine/moments/estimates.h"
#include "engine/results/results_reader.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/results_folder.h"
#include "tools/report/slopes.h"

namespace headlab::tools {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t max_document_bytes = std::size_t{1} << 33;

/// The argument of --against that subtracts what the document says; empty where it says nothing.
std::string against_argument(const Value& document) {
  const std::string subtracted = text_of(member(document, "difference_to"));
  constexpr std::string_view numbered = "condition ";  // "condition #4"
  if (subtracted.starts_with(numbered)) return subtracted.substr(numbered.size());
  const std::size_t equals = subtracted.find(" = ");  // "data.n = 50"
  if (equals == std::string::npos) return "";
  return subtracted.substr(0, equals) + "=" + subtracted.substr(equals + 3);
}

/// \param sets  the --set arguments, a line each
std::string run_command(const std::string& scenario, const std::string& sets,
                        const Value& document) {
  std::string command = "headlab run " + shell_word(scenario);
  std::istringstream lines(sets);
  for (std::string set; std::getline(lines, set);) command += " --set " + shell_word(set);
  const std::string backend = text_of(member(member(document, "headlab"), "backend"));
  if (!backend.empty()) command += " --backend " + shell_word(backend);
  const std::string until = text_of(member(member(document, "until"), "text"));
  if (!until.empty()) command += " --until " + shell_word(until);
  const Value& conditions = member(document, "conditions");
  if (std::ranges::any_of(items_of(conditions), [](const Value& condition) {
        return member(condition, "theory").is<Value::Members>();
      })) {
    command += " --compare";
  }
  if (const std::string against = against_argument(document); !against.empty()) {
    command += " --against " + shell_word(against);
  }
  return command + " --out DIR && headlab report DIR";
}

/// The MSE of a condition; nothing of one without nodes, or of layers.
std::optional<NodeFigure> mse_by_nodes(const MomentTree& tree,
                                       const std::vector<double>& head_weights,
                                       const std::vector<double>& truth, const ControlUse* use) {
  if (tree.count() == 0 || head_weights.empty()) return std::nullopt;
  const JackknifedEstimates averages = jackknifed_averages(tree, head_weights, truth, use);
  return NodeFigure{averages.mse, averages.node_counts};
}

/// Adds what results.nc has to the source of its summary.
void add_results(Source& source, const std::string& path, std::vector<std::string>& notes) {
  try {
    const NetcdfInput file(path);
    const NetcdfGroup root = file.root();
    const auto text = [&](const char* name) {
      return root.has_attribute(name) ? root.text_attribute(name) : std::string();
    };
    if (text("results_id") != text_of(member(source.document, "results_id"))) {
      notes.push_back(one_line(path) + ": is of another state of the run than its summary.json, " +
                      "and not used");
      return;
    }
    source.command = run_command(text("scenario_file"), text("set_arguments"), source.document);
    source.scenario_text = text("scenario_text");
    const ResultsReader reader(root);
    for (const std::size_t number : precision_conditions(source.conditions)) {
      const StoredCondition stored = reader.read(number);
      if (stored.nodes.empty() || stored.layout.mode == MomentMode::separate) continue;
      source.precision.push_back(
          {number, mse_by_replicates(MomentTree(stored.layout, stored.nodes), stored.head_weights,
                                     stored.truth, stored.use())});
    }
    if (source.shown_conditions().size() == source.conditions) {
      source.slopes = slopes_over_n(source.shown_conditions(), [&](std::size_t number) {
        const StoredCondition stored = reader.read(number);
        return mse_by_nodes(MomentTree(stored.layout, stored.nodes), stored.head_weights,
                            stored.truth, stored.use());
      });
    }
  } catch (const NetcdfError& error) {
    notes.push_back(one_line(path) + ": no precision is shown (" + error.what() + ")");
  } catch (const std::invalid_argument& error) {
    notes.push_back(one_line(path) + ": no precision is shown (" + error.what() + ")");
  }
}

std::optional<Source> read_one(const std::string& path, std::vector<std::string>& notes) {
  const std::string text = read_file(path, max_document_bytes);
  const bool has_sum = check_json_sum(path, text);
  std::optional<Source> source = read_document(text, one_line(path));
  if (source && !has_sum) note_without_sums(path);
  const fs::path place(path);
  if (!source || source->kind != SourceKind::run || place.filename() != "summary.json") {
    return source;
  }
  const std::string results = (place.parent_path() / "results.nc").string();
  std::error_code none;
  if (fs::is_regular_file(results, none)) add_results(*source, results, notes);
  return source;
}

}  // namespace

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    const fs::path file = fs::path(folder) / name;
    std::error_code none;
    if (file.extension() == ".json" && fs::is_regular_file(file, none)) {
      files.push_back(file.string());
    }
  }
  if (error) throw InvalidInput(one_line(folder) + ": cannot be read (" + error.message() + ")");
  return files;
}

bool is_own_name(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return name == "summary.json" || name == "verdicts.json" || name == "map.json";
}

bool SourceReader::add(const std::string& file, std::vector<Source>& sources) {
  std::error_code error;
  const std::string place = fs::weakly_canonical(file, error).string();
  if (taken_.contains(place)) {
    notes_.push_back(one_line(file) + ": is given twice, and shown once");
    return true;
  }
  std::optional<Source> source = read_one(file, notes_);
  if (!source) return false;
  sources.push_back(std::move(*source));
  taken_.insert(place);
  return true;
}

std::vector<Source> SourceReader::read(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw InvalidInput(one_line(path) + ": is not there - give the folder of --out");
  }
  std::vector<Source> sources;
  if (!fs::is_directory(path, error)) {
    require_merged(path);
    if (add(path, sources)) return sources;
    throw InvalidInput(
        one_line(path) +
        ": is not a document of run, theory, validate, allocate, hdi, heads or along - "
        "give what --out or --json wrote");
  }
  bool any = false;
  for (const std::string& file : json_files(path)) {
    try {
      any = add(file, sources) || any;
    } catch (const InvalidInput&) {
      if (is_own_name(file)) throw;
    }
  }
  if (!any && !data_set_in(path).empty()) {
    throw InvalidInput(one_line(path) +
                       ": holds a data set, of which there is no report - give the folder of "
                       "headlab run --out");
  }
  if (!any) {
    require_merged(path);
    throw InvalidInput(one_line(path) +
                       ": holds no summary.json, verdicts.json or other JSON of headlab - give "
                       "the folder of --out, or a file of --json");
  }
  return sources;
}

Source source_of_run(const Scenario& scenario, const RunResult& result,
                     const std::string& summary) {
  Source source = source_of_document(summary);
  std::string sets;
  for (const std::string& set : scenario.sets) sets += set + "\n";
  source.command = run_command(scenario.file, sets, source.document);
  source.scenario_text = scenario.text;
  if (source.shown_conditions().size() == source.conditions) {
    source.slopes = slopes_over_n(source.shown_conditions(), [&](std::size_t number) {
      const ConditionResult& one = result.conditions.at(number);
      const std::optional<ControlUse> use = control_use(one);
      return mse_by_nodes(one.tree, one.plan.head_weights, one.plan.truth, use ? &*use : nullptr);
    });
  }
  for (const std::size_t number : precision_conditions(source.conditions)) {
    const ConditionResult& one = result.conditions.at(number);
    if (one.tree.count() == 0 || one.layers) continue;
    const std::optional<ControlUse> use = control_use(one);
    source.precision.push_back({number, mse_by_replicates(one.tree, one.plan.head_weights,
                                                          one.plan.truth, use ? &*use : nullptr)});
  }
  return source;
}

Source source_of_document(const std::string& text) {
  std::optional<Source> source = read_document(text, "the results");
  if (!source) throw std::logic_error("a document of headlab is of no kind that a report knows");
  return std::move(*source);
}

}  // namespace headlab::tools
