// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/theory.h"

#include <iostream>
#include <string_view>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/results/summary_json.h"
#include "engine/run/simulate.h"
#include "engine/scenario/law_reader.h"
#include "kernels/parallel_for.h"
#include "tools/cli/characters.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/scenario_argument.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/stop_signal.h"
#include "tools/cli/supervise.h"
#include "tools/cli/table.h"

namespace headlab::tools {
namespace {

TheorySource source_of(const std::string& name) {
  if (name == "auto") return TheorySource::automatic;
  if (name == "exact") return TheorySource::exact;
  if (name == "first_order") return TheorySource::first_order;
  throw InvalidInput("--source: \"" + one_line(name) + "\" is unknown" +
                     suggestion(name, {"auto", "exact", "first_order"}));
}

}  // namespace

ExitCode command_theory(const TheoryArguments& arguments) {
  const TheorySource source = source_of(arguments.source);
  const int threads = thread_count(parse_threads(arguments.threads));
  if (arguments.scenario.empty()) {
    throw InvalidInput("theory: no scenario given - write headlab theory SCENARIO.toml");
  }
  Session session;
  session.stop = stop_on_signals();
  const Scenario scenario =
      read_supervised(arguments.scenario, arguments.sets, session, false, {.simulates = false});
  const bool json_to_standard_output = arguments.json == "-";
  if (arguments.json && !json_to_standard_output) {
    require_json_writable(*arguments.json, scenario.inputs);
  }
  const std::vector<ComputedCondition> theory = computed_conditions(
      scenario, compute_theories(scenario, source, threads, session.stop_hook()));
  end_on_signals();
  const auto summary = [&](const TextSink& out) {
    write_theory_json(out, theory, threads, provenance());
  };
  if (json_to_standard_output) {
    summary([](std::string_view text) { std::cout << text; });
  } else {
    std::cout << shown(theory_table(scenario, theory));
  }
  finish_standard_output();
  if (arguments.json && !json_to_standard_output) {
    write_atomically(*arguments.json, summary);
    std::cerr << "headlab: wrote " << *arguments.json << "\n";
  }
  return ExitCode::done;
}

}  // namespace headlab::tools
