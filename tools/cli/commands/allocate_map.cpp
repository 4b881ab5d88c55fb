// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/allocations.h"
#include "tools/cli/commands/allocate.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/kept_units.h"
#include "validation/allocation/allocation_json.h"

namespace headlab::tools {

ExitCode allocate_map(const AllocateArguments& arguments, const AllocateRequest& request,
                      const Scenario& scenario, Session session) {
  std::vector<std::string> parts = fingerprints_of(scenario);
  for (const BandwidthRule rule : arguments.rules) parts.emplace_back(rule_name(rule));
  for (const auto* numbers : {&request.budgets, &request.sizes}) {
    parts.emplace_back("numbers");
    for (const std::uint64_t number : *numbers) parts.push_back(std::to_string(number));
  }
  parts.push_back(std::to_string(request.options.replicates));
  const Texts results = {"map.nc", "map.json"};
  KeptUnits kept(arguments, "allocate --map", results, parts, session);
  if (const auto ended_before = kept.ended_before(arguments, results)) return *ended_before;

  const std::vector<int> budgets(request.budgets.begin(), request.budgets.end());
  const RegimeMap map = supervise(session, arguments, show_stage, [&](ProgressDisplay&) {
    return map_regimes(scenario, arguments.rules, budgets, request.sizes, session, request.options);
  });

  if (kept.is_shard()) return kept.end_shard(map.outcome);

  const std::string again = again_text(
      arguments, " --map", numbers_text(request.budgets), numbers_text(request.sizes),
      rules_text(arguments.rules),
      " --seed " + std::to_string(map.seed) + " --backend " + session.backend->name() +
          (arguments.replicates ? " --replicates " + std::to_string(*arguments.replicates) : ""));
  const std::string text = regime_json(map, provenance(), again);
  if (!map.cells.empty()) {
    kept.keep(map.outcome);
    std::vector<TextFile> files;
    if (const OutputFolder* out = kept.folder()) {
      files.emplace_back(out->file("map.json"), text);
      write_regime_map(out->file("map.nc"), scenario, map, provenance(), again);
      if (!arguments.quiet) std::cerr << "headlab: wrote " << out->file("map.nc") << "\n";
    }
    write_documents(arguments, text, std::move(files));
  }
  kept.end(map.outcome,
           map.failure.empty() ? std::optional(exit_code_of(map.outcome)) : std::nullopt);
  print_document(arguments, text, [&] {
    return map.cells.empty()
               ? ""
               : one_line(scenario.conditions.front().name) + "\n" + regime_table(map) +
                     "again: " + again + "\n" + duration_text(map.outcome.seconds) + "\n";
  });
  if (!map.failure.empty()) throw RunFailed(map.failure + " - the cells before it are kept");
  return ended(map.outcome, map.cells.empty()         ? "nothing was reached"
                            : map.outcome.interrupted ? "cells that were not reached are missing"
                                                      : "some cells are missing");
}

}  // namespace headlab::tools
