// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/replay.h"

#include <iostream>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/replay/replay.h"
#include "engine/replay/replay_netcdf.h"
#include "tools/cli/characters.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/progress.h"
#include "tools/cli/replay_table.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/supervise.h"

namespace headlab::tools {
namespace {

constexpr const char* file_name = "replay.nc";

/// The condition asked for, from 0.
std::size_t condition_of(const ReplayArguments& arguments, const Scenario& scenario) {
  const std::size_t last = scenario.conditions.size() - 1;
  if (arguments.condition) {
    const std::string& text = *arguments.condition;  // "3", or "#3" as messages have it
    return parse_whole_number("--condition", text.substr(text.starts_with('#') ? 1 : 0), 0, last);
  }
  if (last == 0) return 0;
  throw InvalidInput("replay: the scenario has " + std::to_string(last + 1) +
                     " conditions - write --condition C, from 0 to " + std::to_string(last));
}

}  // namespace

ExitCode command_replay(const ReplayArguments& arguments) {
  const RunArguments& run = arguments.run;
  if (run.scenario.empty()) {
    throw InvalidInput("replay: no scenario given - write headlab replay SCENARIO.toml");
  }
  Session session = session_of(run);
  if (!arguments.replicate) {
    throw InvalidInput("replay: no replicate given - write --replicate R, counted from 0");
  }
  if (!run.out) throw InvalidInput("replay: no folder given - write --out DIR");
  const Scenario scenario =
      read_supervised(run.scenario, all_sets(run), session, run.quiet, {.depth = false});
  const std::size_t number = condition_of(arguments, scenario);
  const Condition& condition = scenario.conditions[number];
  const std::uint64_t replicate =
      parse_whole_number("--replicate", *arguments.replicate, 0, condition.replicates - 1);
  OutputFolder folder(*run.out);
  const std::string path = folder.file(file_name);
  require_no_input("--out", path, scenario.inputs);
  folder.claim();
  if (!run.overwrite) folder.require_none_of({file_name}, overwrite_only);

  const Replay replay = supervise(session, run, show_run, [&](ProgressDisplay& display) {
    Replay found = replay_replicate(condition, replicate, session);
    display.finish("");
    if (found.outcome.complete) write_replay(path, scenario, number, found, provenance());
    return found;
  });
  if (replay.outcome.complete) {
    std::cout << shown(replay_table(scenario, number, replay));
    finish_standard_output();
    if (!run.quiet) std::cerr << "headlab: wrote " << path << "\n";
  }
  return ended(replay.outcome, "nothing was written");
}

}  // namespace headlab::tools
