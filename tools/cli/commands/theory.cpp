// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "engine/results/summary_json.h"
#include "engine/scenario/scenario.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/table.h"

namespace headlab::tools {
namespace {

const std::vector<std::pair<std::string, TheorySource>> theory_sources = {
    {"auto", TheorySource::automatic},
    {"exact", TheorySource::exact},
    {"first_order", TheorySource::first_order}};

struct TheoryArguments : CommonArguments {
  TheorySource source = TheorySource::automatic;

  void list(Options& options) {
    take(options, {"SCENARIO.toml", "--set"});
    options.choice("--source", "FORM",
                   "exact, first_order or auto (the default): exact where it applies", source,
                   theory_sources);
    take(options, {"--json", "--table", "--threads"});
  }
};

/// The command that gives the same numbers again.
std::string command_again(const TheoryArguments& arguments) {
  std::string text = "headlab theory " + shell_word(arguments.scenario);
  for (const std::string& set : arguments.sets) text += " --set " + shell_word(set);
  for (const auto& [name, source] : theory_sources) {
    if (source == arguments.source && source != TheorySource::automatic)
      text += " --source " + name;
  }
  return text;
}

ExitCode theory(const TheoryArguments& arguments) {
  const int threads = thread_count(threads_of(arguments));
  if (arguments.scenario.empty()) {
    throw InvalidInput("theory: no scenario given - write headlab theory SCENARIO.toml");
  }
  Session session;
  session.stop = stop_on_signals();
  const Scenario scenario =
      read_supervised(arguments.scenario, arguments, session, {.simulates = false});
  require_documents(arguments, scenario.inputs);
  const std::vector<ComputedCondition> theory = computed_conditions(
      scenario, compute_theories(scenario, arguments.source, threads, session.stop_hook()));
  end_on_signals();
  std::string json;
  if (arguments.need_document()) {
    write_theory_json([&](std::string_view part) { json += part; }, theory, threads, provenance(),
                      command_again(arguments));
  }
  write_documents(arguments, json);
  print_document(arguments, json, [&] { return theory_table(scenario, theory); });
  return ExitCode::done;
}

}  // namespace

Command theory_command() {
  return make_command("theory", "Compute a scenario from closed forms alone", theory);
}

}  // namespace headlab::tools
