// SPDX-License-Identifier: Apache-2.0
#include "engine/replay/replay.h"

#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/table.h"

namespace headlab::tools {
namespace {

constexpr const char* file_name = "replay.nc";

struct ReplayArguments : CommonArguments {
  std::optional<std::string> replicate, condition;

  void list(Options& options) {
    take(options, {"SCENARIO.toml", "--set"});
    options.text("--replicate", "R", "The replicate, counted from 0", replicate);
    options.text("--condition", "C",
                 "The condition of a sweep, counted from 0 in the order of the table", condition);
    take(options, {{"--out", "Write replay.nc here"}, "--overwrite"});
    take(options, simulation);
  }
};

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

ExitCode replay(const ReplayArguments& arguments) {
  if (arguments.scenario.empty()) {
    throw InvalidInput("replay: no scenario given - write headlab replay SCENARIO.toml");
  }
  Session session = session_of(arguments);
  if (!arguments.replicate) {
    throw InvalidInput("replay: no replicate given - write --replicate R, counted from 0");
  }
  if (!arguments.out) throw InvalidInput("replay: no folder given - write --out DIR");
  const Scenario scenario =
      read_supervised(arguments.scenario, arguments, session, {.depth = false});
  const std::size_t number = condition_of(arguments, scenario);
  const Condition& condition = scenario.conditions[number];
  const std::uint64_t replicate =
      parse_whole_number("--replicate", *arguments.replicate, 0, condition.replicates - 1);
  OutputFolder folder(*arguments.out);
  const std::string path = folder.file(file_name);
  require_no_input("--out", path, scenario.inputs);
  folder.claim();
  folder.require_place_for({file_name}, arguments.overwrite ? nullptr : overwrite_only);

  const Replay of_replicate =
      supervise(session, arguments, show_run, [&](ProgressDisplay& display) {
        Replay found = replay_replicate(condition, replicate, session);
        display.finish("");
        if (found.outcome.complete) write_replay(path, scenario, number, found, provenance());
        return found;
      });
  if (of_replicate.outcome.complete) {
    print(shown(replay_table(scenario, number, of_replicate)));
    if (!arguments.quiet) std::cerr << "headlab: wrote " << path << "\n";
  }
  return ended(of_replicate.outcome, "nothing was written");
}

}  // namespace

Command replay_command() {
  return make_command("replay", "Show one replicate of a scenario in full", replay);
}

}  // namespace headlab::tools
