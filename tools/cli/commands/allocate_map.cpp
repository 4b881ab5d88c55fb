// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/allocate_map.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "tools/cli/characters.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/growth_text.h"
#include "tools/cli/kept_units.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/supervise.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"
#include "validation/allocation/allocation_json.h"

namespace headlab::tools {
namespace {

std::string replay(const AllocateArguments& arguments, const RegimeMap& map,
                   const std::string& backend) {
  std::string command = "headlab allocate --map --data " + shell_word(arguments.run.scenario) +
                        " --budget " + *arguments.budget + " --n " + *arguments.n +
                        " --bandwidth-rule " + arguments.rule + " --seed " +
                        std::to_string(map.seed) + " --backend " + backend;
  if (arguments.run.replicates) command += " --replicates " + *arguments.run.replicates;
  for (const std::string& set : arguments.run.sets) command += " --set " + shell_word(set);
  return command;
}

}  // namespace

ExitCode command_allocate_map(const AllocateArguments& arguments, const Scenario& scenario,
                              const std::vector<BandwidthRule>& rules,
                              const std::vector<std::uint64_t>& budgets,
                              const std::vector<std::uint64_t>& sizes, Session session,
                              const AllocateOptions& options) {
  const std::optional<std::string>& json = arguments.run.json;
  if (json && *json != "-") require_json_writable(*json, scenario.inputs);
  const std::optional<std::string>& report = arguments.run.report;
  std::optional<OutputFolder> out;
  if (arguments.run.out) out.emplace(*arguments.run.out);
  if (out && !arguments.run.overwrite && !continues_units(arguments.run))
    out->require_none_of({"map.nc", "map.json"}, overwrite_only);

  std::vector<std::string> parts = fingerprints_of(scenario);
  for (const BandwidthRule rule : rules) parts.emplace_back(rule_name(rule));
  for (const auto* numbers : {&budgets, &sizes}) {
    parts.emplace_back("numbers");
    for (const std::uint64_t number : *numbers) parts.push_back(std::to_string(number));
  }
  parts.push_back(std::to_string(options.replicates));
  KeptUnits kept(arguments.run, out ? &*out : nullptr, "allocate --map", parts, session);

  const auto ended_before =
      kept.ended_before(arguments.run, out ? &*out : nullptr, {"map.nc", "map.json"});
  if (ended_before) return *ended_before;

  const std::vector<int> whole(budgets.begin(), budgets.end());
  const RegimeMap map = supervise(session, arguments.run, show_stage, [&](ProgressDisplay&) {
    return map_regimes(scenario, rules, whole, sizes, session, options);
  });

  if (kept.is_shard()) return kept.end_shard(map.outcome);

  const std::string again = replay(arguments, map, session.backend->name());
  const std::string text = regime_json(map, provenance(), again);
  if (!map.cells.empty()) {
    std::vector<TextFile> files;
    if (json && *json != "-") files.emplace_back(*json, text);
    if (out) {
      files.emplace_back(out->file("map.json"), text);
      write_regime_map(out->file("map.nc"), scenario, map, provenance(), again);
      if (!arguments.run.quiet) std::cerr << "headlab: wrote " << out->file("map.nc") << "\n";
    }
    if (report) files.emplace_back(*report, report_page({source_of_document(text)}));
    write_files(files, arguments.run.quiet);
  }
  kept.end(map.outcome,
           map.failure.empty() ? std::optional(exit_code_of(map.outcome)) : std::nullopt);
  if (json == "-") {
    std::cout << text;
  } else if (!map.cells.empty()) {
    std::cout << shown(one_line(scenario.conditions.front().name)) << "\n"
              << shown(regime_table(map)) << "again: " << again << "\n"
              << duration_text(map.outcome.seconds) << "\n";
  }
  finish_standard_output();
  if (!map.failure.empty()) throw RunFailed(map.failure + " - the cells before it are kept");
  return ended(map.outcome, map.cells.empty()         ? "nothing was reached"
                            : map.outcome.interrupted ? "cells that were not reached are missing"
                                                      : "some cells are missing");
}

}  // namespace headlab::tools
