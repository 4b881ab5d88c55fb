// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/allocate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "tools/cli/allocations.h"
#include "tools/cli/characters.h"
#include "tools/cli/commands/allocate_by_theory.h"
#include "tools/cli/commands/allocate_map.h"
#include "tools/cli/commands/allocate_request.h"
#include "tools/cli/kept_units.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/scenario_argument.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/supervise.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"
#include "tools/report/write_report.h"
#include "validation/allocation/allocation_json.h"

namespace headlab::tools {
namespace {

/// The command that gives the same bits again, on this backend and SIMD target; with `all` that of
/// all that was asked.
std::string replay(const AllocateArguments& arguments, const AllocationStudy& study,
                   std::uint64_t replicates, bool all = false) {
  const std::string budget = all ? *arguments.budget : std::to_string(study.budget);
  const std::string n = all && arguments.n ? *arguments.n : std::to_string(study.n);
  std::string command = "headlab allocate --data " + shell_word(arguments.run.scenario) +
                        " --budget " + budget + " --n " + n + " --bandwidth-rule " +
                        rule_name(study.rule) + (all && arguments.growth ? " --growth" : "") +
                        " --seed " + std::to_string(study.seed) + " --replicates " +
                        std::to_string(replicates) + " --backend " + study.machine.backend;
  if (arguments.dims) command += " --dims " + *arguments.dims;
  for (const std::string& set : arguments.run.sets) command += " --set " + shell_word(set);
  return command;
}

}  // namespace

ExitCode command_allocate(const AllocateArguments& arguments) {
  Session session = session_of(arguments.run);
  if (arguments.run.scenario.empty()) {
    throw InvalidInput(
        "allocate: no scenario given - write headlab allocate --data SCENARIO.toml --budget D");
  }
  AllocateRequest request = allocate_request(arguments);
  require_out(arguments.run.overwrite, arguments.run.out);
  const Scenario scenario = read_supervised(arguments.run.scenario, all_sets(arguments.run),
                                            session, arguments.run.quiet, {.depth = false});
  if (arguments.run.report) {
    require_report_writable("--report", *arguments.run.report, scenario.inputs);
  }
  complete_request(request, arguments, scenario);
  if (arguments.map) {
    return command_allocate_map(arguments, scenario, request.rules, request.budgets, request.sizes,
                                session, request.options);
  }
  const Condition& base = scenario.conditions.front();
  const std::optional<std::string>& json = arguments.run.json;
  if (json && *json != "-") require_json_writable(*json, scenario.inputs);
  const std::optional<std::string>& report = arguments.run.report;
  if (request.theory) {
    if (arguments.run.shard || arguments.run.resume) {
      throw InvalidInput(std::string(arguments.run.shard ? "--shard" : "--resume") +
                         ": is about simulations - leave out --source " + arguments.source);
    }
    return allocate_by_theory(arguments, *request.theory, base, request.options.rule,
                              request.budgets, request.sizes, session.threads);
  }

  std::optional<OutputFolder> folder;
  if (arguments.run.out) folder.emplace(*arguments.run.out);
  std::vector<std::string> parts = fingerprints_of(scenario);
  parts.insert(
      parts.end(),
      {arguments.rule, *arguments.budget, arguments.n.value_or(""), arguments.dims.value_or(""),
       std::to_string(request.options.replicates), arguments.growth ? "growth" : ""});
  KeptUnits kept(arguments.run, folder ? &*folder : nullptr, "allocate", parts, session);

  const Allocations all = supervise(session, arguments.run, show_stage, [&](auto& display) {
    Allocations so_far;
    try {
      const auto again = [&](const AllocationStudy& study) {
        return replay(arguments, study, request.options.replicates);
      };
      add_allocations(so_far, base, request.budgets, request.sizes, arguments.growth, again,
                      session, request.options);
    } catch (...) {
      display.finish("");
      // What came before the setting that failed is not lost.
      if (json && *json != "-" && !so_far.studies.empty()) {
        write_files({{*json, allocation_json(so_far.studies, provenance(), so_far.growths)}},
                    arguments.run.quiet);
      }
      throw;
    }
    return so_far;
  });

  if (kept.is_shard()) return kept.end_shard(all.outcome);

  const std::vector<HeadGrowthAt> heads = all.head_growths(request.sizes, base.seed);
  const bool reached = all.is_reached();
  const std::string again =
      replay(arguments, all.studies[0].study, request.options.replicates, true);
  std::string text;
  if (json || report) {
    text = allocation_json(all.studies, provenance(), all.growths, heads, again);
  }
  // Files first: they are there whatever reads the output. Like `run`, a command that has nothing
  // to keep leaves an earlier file.
  std::vector<TextFile> files;
  if (json && *json != "-") files.emplace_back(*json, text);
  if (report) files.emplace_back(*report, report_page({source_of_document(text)}));
  if (reached) write_files(files, arguments.run.quiet);
  kept.end(all.outcome);
  if (json == "-") {
    std::cout << text;
  } else if (reached) {
    std::cout << shown(allocations_table(base.name, all, heads, again));
  }
  finish_standard_output();
  return ended(all.outcome, reached ? "what was not reached is unfinished" : "nothing was reached");
}

}  // namespace headlab::tools
