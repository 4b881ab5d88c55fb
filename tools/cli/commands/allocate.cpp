// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/allocate.h"

#include "engine/scenario/scenario.h"
#include "tools/cli/allocations.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/kept_units.h"
#include "validation/allocation/allocation_json.h"

namespace headlab::tools {
namespace {

using Numbers = std::vector<std::uint64_t>;

/// The command that gives the same bits again, on this backend and SIMD target; with `all` that of
/// all that was asked.
std::string replay(const AllocateArguments& arguments, const AllocateRequest& request,
                   const AllocationStudy& study, bool all = false) {
  return again_text(
      arguments, "",
      numbers_text(all ? request.budgets : Numbers{static_cast<std::uint64_t>(study.budget)}),
      numbers_text(all ? request.sizes : Numbers{study.n}), rule_name(study.rule),
      std::string(all && arguments.growth ? " --growth" : "") + " --seed " +
          std::to_string(study.seed) + " --replicates " +
          std::to_string(request.options.replicates) + " --backend " + study.machine.backend +
          (arguments.dims.empty() ? "" : " --dims " + numbers_text(arguments.dims)));
}

ExitCode allocate(const AllocateArguments& arguments) {
  Session session = session_of(arguments);
  if (arguments.scenario.empty()) {
    throw InvalidInput(
        "allocate: no scenario given - write headlab allocate --data SCENARIO.toml --budget D");
  }
  AllocateRequest request = allocate_request(arguments);
  require_out(arguments.overwrite, arguments.out);
  const Scenario scenario =
      read_supervised(arguments.scenario, arguments, session, {.depth = false});
  complete_request(request, arguments, scenario);
  require_documents(arguments, scenario.inputs);
  if (arguments.map) return allocate_map(arguments, request, scenario, session);
  const Condition& base = scenario.conditions.front();
  if (request.theory) {
    if (arguments.shard || arguments.resume) {
      throw InvalidInput(std::string(arguments.shard ? "--shard" : "--resume") +
                         ": is about simulations - leave out --source " + arguments.source);
    }
    return allocate_by_theory(arguments, request, base, session);
  }

  std::vector<std::string> parts = fingerprints_of(scenario);
  parts.insert(parts.end(),
               {rule_name(request.options.rule), numbers_text(request.budgets),
                numbers_text(arguments.sizes), numbers_text(arguments.dims),
                std::to_string(request.options.replicates), arguments.growth ? "growth" : ""});
  KeptUnits kept(arguments, "allocate", {}, parts, session);

  const Allocations all = supervise(session, arguments, show_stage, [&](auto& display) {
    Allocations so_far;
    try {
      const auto again = [&](const AllocationStudy& study) {
        return replay(arguments, request, study);
      };
      add_allocations(so_far, base, request.budgets, request.sizes, arguments.growth, again,
                      session, request.options);
    } catch (...) {
      display.finish("");
      // What came before the setting that failed is not lost.
      if (arguments.json && arguments.json != "-" && !so_far.studies.empty()) {
        write_files(
            {{*arguments.json, allocation_json(so_far.studies, provenance(), so_far.growths)}},
            arguments.quiet);
      }
      throw;
    }
    return so_far;
  });

  if (kept.is_shard()) return kept.end_shard(all.outcome);

  const std::vector<HeadGrowthAt> heads = all.head_growths(request.sizes, base.seed);
  const bool reached = all.is_reached();
  const std::string again = replay(arguments, request, all.studies[0].study, true);
  std::string text;
  if (arguments.need_document()) {
    text = allocation_json(all.studies, provenance(), all.growths, heads, again);
  }
  // Files first: they are there whatever reads the output. Like `run`, a command that has nothing
  // to keep leaves an earlier file.
  kept.keep(all.outcome);
  if (reached) write_documents(arguments, text);
  kept.end(all.outcome);
  print_document(arguments, text,
                 [&] { return reached ? allocations_table(base.name, all, heads, again) : ""; });
  return ended(all.outcome, reached ? "what was not reached is unfinished" : "nothing was reached");
}

}  // namespace

Command allocate_command() {
  return make_command("allocate", "Advise how many heads of what dimension to use", allocate);
}

}  // namespace headlab::tools
