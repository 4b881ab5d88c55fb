// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/run.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "engine/results/results_id.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/summary_json.h"
#include "engine/run/control_check.h"
#include "engine/run/ranks.h"
#include "engine/run/run.h"
#include "engine/scenario/law_reader.h"
#include "kernels/parallel_for.h"
#include "tools/cli/characters.h"
#include "tools/cli/commands/dry_run.h"
#include "tools/cli/commands/shards.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/condition_indices.h"
#include "tools/cli/extremes_text.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/ranks_of_job.h"
#include "tools/cli/results_folder.h"
#include "tools/cli/scenario_argument.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/supervise.h"
#include "tools/cli/table.h"
#include "tools/report/read_sources.h"
#include "tools/report/write_report.h"
#include "validation/claims/stated_claim.h"
#include "validation/verdicts/validate.h"

namespace headlab::tools {
namespace {

/// True where two paths lead to one file, which need not be there.
bool same_place(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::weakly_canonical(a, none) == std::filesystem::weakly_canonical(b, none);
}

std::string summary_text(const Scenario& scenario, const RunResult& result,
                         const RunReport& report) {
  std::string text;
  summary_writer(scenario, result, report)([&](std::string_view part) { text += part; });
  return text;
}

/// The conditions that --against or --difference subtracts.
References references_of(const RunArguments& arguments, const Scenario& scenario) {
  if (arguments.against) return references_against(scenario, *arguments.against);
  if (arguments.difference) return references_by_key(scenario, *arguments.difference);
  return {};
}

/// Says of a scenario with a section [claim] that a run is not its verdict.
void say_claims(const Scenario& scenario, const std::string& file) {
  const Value parameters = scenario.conditions.at(0).parameters.tree();
  const Value* claim = parameters.find("claim");
  if (claim == nullptr) return;
  const std::size_t count = count_stated_claims(scenario);
  if (count == 0 && claim->find("name") == nullptr) return;
  std::cerr << "headlab: " << (file == "-" ? "the scenario" : one_line(file));
  if (count == 0) {
    std::cerr << " is of a built-in claim";
  } else {
    std::cerr << " states " << count << (count == 1 ? " claim" : " claims");
  }
  std::cerr << ", on which a run gives no verdict - write headlab validate ";
  if (file == "-") {
    std::cerr << "FILE.toml\n";
  } else {
    std::cerr << shell_word(names_scenario(file) ? file : "./" + file) << "\n";
  }
}

}  // namespace

ExitCode command_run(const RunArguments& arguments) {
  Session session = session_of(arguments);
  RunOptions options;
  if (arguments.checkpoint) {
    options.checkpoint_seconds = parse_duration("--checkpoint", *arguments.checkpoint);
  }
  const bool nodes = keeps_nodes(arguments);
  if (arguments.until) options.until = parse_until(*arguments.until);
  const std::vector<std::string> sets = all_sets(arguments);
  if (arguments.scenario.empty()) {
    throw InvalidInput("run: no scenario given - write headlab run SCENARIO.toml");
  }
  require_run_arguments(arguments);
  if (arguments.shard) require_fits_shard(arguments);
  const auto shared = std::make_shared<const Scenario>(
      read_supervised(arguments.scenario, sets, session, arguments.quiet));
  const Scenario& scenario = *shared;
  options.references = references_of(arguments, scenario);
  if (!arguments.quiet) say_claims(scenario, arguments.scenario);
  if (arguments.shard) return command_run_shard(arguments, shared, session);
  Ranks* const ranks = ranks_of_job();
  if (ranks && !arguments.threads) session.threads = threads_of_this_rank();
  if (ranks && !ranks->leads()) {
    if (!arguments.dry_run) run(shared, session, {.ranks = ranks});
    return ExitCode::done;
  }
  if (arguments.dry_run) return dry_run(arguments, scenario, session);
  options.ranks = ranks;
  std::optional<OutputFolder> folder;
  if (arguments.out) folder.emplace(*arguments.out);
  const bool json_to_standard_output = arguments.json == "-";
  if (folder) require_no_results_among_inputs(*folder, scenario);
  if (arguments.json && !json_to_standard_output) {
    require_json_writable(*arguments.json, scenario.inputs);
    if (folder && same_place(*arguments.json, folder->file("results.nc"))) {
      throw InvalidInput("--json: is where --out writes results.nc - choose another place");
    }
  }
  if (arguments.report) {
    require_report_writable("--report", *arguments.report, scenario.inputs);
    for (const char* name : {"results.nc", "summary.json"}) {
      if (folder && same_place(*arguments.report, folder->file(name))) {
        throw InvalidInput(std::string("--report: is where --out writes ") + name +
                           " - choose another place");
      }
    }
  }
  if (folder)
    claim_results(*folder, *arguments.out, scenario, arguments.resume, arguments.overwrite);
  std::optional<Checkpoint> begun;
  double seconds_before = 0;
  if (arguments.resume) {
    begun = begun_in(*folder, arguments, scenario, [&](const std::string& line, bool warns) {
      if (warns || !arguments.quiet) std::cerr << "headlab: " << line << "\n";
    });
  }
  if (begun) {
    options.begun = &*begun;
    seconds_before = begun->seconds();
  }
  // Before the simulation: where no closed form applies nothing is simulated.
  std::vector<Theory> theories;
  if (arguments.compare) {
    theories = compute_theories(scenario, TheorySource::automatic, thread_count(session.threads),
                                session.stop_hook());
  }

  const auto report_of = [&](const RunResult& result) {
    RunReport report{.indices = condition_indices(result)};
    if (arguments.compare) report.theory = compared_conditions(result, theories);
    return report;
  };
  RunReport report;
  std::string files;
  std::exception_ptr problem;
  const RunResult result = supervise(session, arguments, show_run, [&](ProgressDisplay& display) {
    if (folder) {
      options.checkpoint = [&](const RunResult& so_far) {
        try {
          write_results_folder(*folder, scenario, so_far, report_of(so_far), nodes);
          return;
        } catch (const RunFailed& error) {
          display.finish("");
          std::cerr << "headlab: " << error.what();
        } catch (const std::bad_alloc&) {
          display.finish("");
          std::cerr << "headlab: no memory to write the results so far";
        }
        std::cerr << "; the run continues\n";  // there may be room at the end
      };
    }
    if (ranks && !arguments.quiet) {
      const int threads = thread_count(session.threads);
      std::cerr << "headlab: " << ranks->size() << " ranks, " << threads
                << (threads == 1 ? " thread" : " threads") << " on this one\n";
    }
    RunResult found = run(shared, session, options);
    double seconds = -seconds_before;
    for (const ConditionResult& one : found.conditions) seconds += one.seconds;
    display.finish(found.outcome.complete ? "done in " + duration_text(seconds) : "");
    for (const std::string& note : found.notes) std::cerr << "headlab: " << note << "\n";

    report = report_of(found);
    // A run that has nothing to keep leaves the results of an earlier one.
    if (found.conditions.empty()) return found;
    // Where a file cannot be written after hours of work, standard output still gets the results.
    try {
      if (folder) {
        write_results_folder(*folder, scenario, found, report, nodes);
        files = folder->file("results.nc") + ", " + folder->file("summary.json");
      }
      if (arguments.json && !json_to_standard_output) {
        write_atomically(*arguments.json, summary_writer(scenario, found, report));
        files += (files.empty() ? "" : ", ") + *arguments.json;
      }
      if (arguments.report) {
        write_report(*arguments.report,
                     {source_of_run(scenario, found, summary_text(scenario, found, report))});
        files += (files.empty() ? "" : ", ") + *arguments.report;
      }
    } catch (const RunFailed&) {
      problem = std::current_exception();
    }
    return found;
  });
  if (json_to_standard_output) {
    summary_writer(scenario, result, report)([](std::string_view text) { std::cout << text; });
  } else {
    std::cout << shown(result_table(scenario, result, report.indices))
              << (report.theory.empty() ? ""
                                        : "\n" + shown(comparison_table(scenario, report.theory)));
    const std::string extremes = folder ? extremes_text(result, arguments) : "";
    if (!extremes.empty()) std::cout << "\n" << shown(extremes);
  }
  finish_standard_output();
  if (problem) std::rethrow_exception(problem);

  if (const std::string refused = refused_controls(result); !refused.empty()) {
    throw RunFailed(refused);
  }
  const std::string where = files.empty() ? "" : " in " + files;
  // Without anything kept, a run that was to go on was stopped while it learned its heads again.
  const std::string on = folder && nodes && !result.conditions.empty() ? "; --resume continues"
                         : begun                                       ? "; what was there stays"
                                                                       : "";
  if (result.outcome.complete && !files.empty() && !arguments.quiet) {
    std::cerr << "headlab: wrote " << files << "\n";
  }
  return ended(result.outcome, "kept " + kept_text(scenario, result) + where + on);
}

}  // namespace headlab::tools
