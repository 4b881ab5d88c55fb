// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.h"

#include <exception>
#include <string_view>
#include <system_error>

#include "engine/files/atomic_file.h"
#include "engine/replay/replicate_figures.h"
#include "engine/run/control_check.h"
#include "engine/run/ranks.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/ranks_of_job.h"
#include "tools/cli/results_folder.h"
#include "tools/cli/table.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"
#include "tools/tables/write_table.h"
#include "validation/claims/stated_claim.h"
#include "validation/theory/model/model.h"
#include "validation/verdicts/validate.h"

namespace headlab::tools {
namespace {

/// Throws InvalidInput where `path` of an option is that of a file which --out writes.
void require_apart(const std::string& option, const std::string& path, const OutputFolder& folder,
                   const Texts& names) {
  for (const std::string& name : names) {
    std::error_code none;
    if (std::filesystem::weakly_canonical(path, none) !=
        std::filesystem::weakly_canonical(folder.file(name), none)) {
      continue;
    }
    throw InvalidInput(option + ": is where --out writes " + name + " - choose another place");
  }
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
    std::cerr << " states " << counted(count, "claim");
  }
  std::cerr << ", on which a run gives no verdict - write headlab validate ";
  if (file == "-") {
    std::cerr << "FILE.toml\n";
  } else {
    std::cerr << shell_word(names_scenario(file) ? file : "./" + file) << "\n";
  }
}

/// Makes the folder of --out, which is this run's from now on; throws InvalidInput where files
/// cannot be written as asked, or would replace others.
void claim_files(std::optional<OutputFolder>& folder, const RunArguments& arguments,
                 const Scenario& scenario) {
  if (arguments.out) folder.emplace(*arguments.out);
  if (folder) require_no_results_among_inputs(*folder, scenario);
  require_documents(arguments, scenario.inputs);
  if (arguments.replicate_figures) {
    const std::string& path = *arguments.replicate_figures;
    require_replicate_file("--replicate-figures", path, scenario, arguments.first_replicates);
    require_no_input("--replicate-figures", path, scenario.inputs);
    require_writable("--replicate-figures", path);
    require_different_files(
        {{"--table", arguments.table}, {"--json", arguments.json}, {"--replicate-figures", path}});
  }
  if (!folder) return;
  if (arguments.replicate_figures) {
    require_apart("--replicate-figures", *arguments.replicate_figures, *folder, {"results.nc"});
  }
  if (arguments.json) require_apart("--json", *arguments.json, *folder, {"results.nc"});
  if (arguments.report) {
    require_apart("--report", *arguments.report, *folder, {"results.nc", "summary.json"});
  }
  if (arguments.table) {
    require_apart("--table", *arguments.table, *folder, {"results.nc", "summary.json"});
  }
  claim_results(*folder, *arguments.out, scenario, arguments.resume, arguments.overwrite);
}

/// Writes the file of replicates, and says where it does not.
bool write_replicates(const RunArguments& arguments, const RunResult& result,
                      const Session& session) {
  const std::string& path = *arguments.replicate_figures;
  if (result.outcome.complete &&
      write_replicate_figures(path, result, arguments.first_replicates, session)) {
    return true;
  }
  std::cerr << "headlab: --replicate-figures: stopped before the end, and " << one_line(path)
            << " is not written\n";
  return false;
}

/// Writes the files of a run and returns their names; the first problem is kept for later: where a
/// file cannot be written after hours of work, standard output still gets the results.
std::string write_run(const RunArguments& arguments, const std::optional<OutputFolder>& folder,
                      const Scenario& scenario, const RunResult& result, const RunReport& report,
                      const Session& session, std::exception_ptr& problem) {
  std::string files;
  try {
    if (folder) {
      write_results_folder(*folder, scenario, result, report, arguments.nodes);
      files = folder->file("results.nc") + ", " + folder->file("summary.json");
    }
    const auto name = [&](const std::string& file) { files += (files.empty() ? "" : ", ") + file; };
    if (arguments.json && arguments.json != "-") {
      write_atomically(*arguments.json, summary_writer(scenario, result, report));
      name(*arguments.json);
    }
    if (arguments.report) {
      write_report(*arguments.report,
                   {source_of_run(scenario, result, summary_text(scenario, result, report))});
      name(*arguments.report);
    }
    if (arguments.table) {
      write_atomically(
          *arguments.table,
          table_text(*arguments.table, table_of_run(scenario, result, report.indices)));
      name(*arguments.table);
    }
    if (arguments.replicate_figures && write_replicates(arguments, result, session)) {
      name(*arguments.replicate_figures);
    }
  } catch (const RunFailed&) {
    problem = std::current_exception();
  }
  return files;
}

/// A replicate of one of several conditions.
struct ExtremeOfRun {
  std::size_t condition;
  Extreme extreme;
};

/// The most extreme replicate of all conditions, of equal ones that of the first.
/// \param list_of gives the list of a condition, or null
template <class ListOf, class Before>
std::optional<ExtremeOfRun> extreme_of_run(const RunResult& result, const ListOf& list_of,
                                           const Before& before) {
  std::optional<ExtremeOfRun> most;
  for (std::size_t c = 0; c < result.conditions.size(); ++c) {
    const std::optional<Extremes>& extremes = result.conditions[c].tree.kept_extremes();
    const ExtremeList* list = extremes ? list_of(*extremes) : nullptr;
    if (list == nullptr || list->all().empty()) continue;
    const Extreme& first = list->all().front();
    if (!most || before(first.key, most->extreme.key)) most = {c, first};
  }
  return most;
}

std::string replay_command(const RunArguments& run, bool sweep, const ExtremeOfRun& of) {
  const std::string replicate = std::to_string(of.extreme.replicate);
  const std::string condition = std::to_string(of.condition);
  std::string text = "headlab replay " + shell_word(run.scenario);
  for (const std::string& set : run.sets) text += " --set " + shell_word(set);
  if (run.seed) text += " --seed " + std::to_string(*run.seed);
  if (run.replicates) text += " --replicates " + std::to_string(*run.replicates);
  if (run.backend != "auto") text += " --backend " + shell_word(run.backend);
  if (sweep) text += " --condition " + condition;
  const std::string folder = "replay_" + (sweep ? condition + "_" : "") + replicate;
  return text + " --replicate " + replicate + " --out " +
         shell_word((std::filesystem::path(*run.out) / folder).string());
}

/// Of all conditions the replicate with the largest squared error, and the one with the least
/// effective sample size, two lines each: how extreme it is, and the command that replays it into a
/// folder of --out. Empty where neither is known.
std::string extremes_text(const RunResult& result, const RunArguments& arguments) {
  const bool sweep =
      !result.conditions.empty() && !result.conditions.front().condition->swept.empty();
  const auto error = extreme_of_run(
      result, [](const Extremes& of) { return &of.max_error; },
      [](double a, double b) { return a > b; });
  const auto sample_size = extreme_of_run(
      result,
      [](const Extremes& of) { return of.min_sample_size ? &*of.min_sample_size : nullptr; },
      [](double a, double b) { return a < b; });
  const auto line = [&](const std::string& what, const ExtremeOfRun& most) {
    return what + " " + short_number(most.extreme.key) + ": replicate " +
           std::to_string(most.extreme.replicate) +
           (sweep ? " of " + numbered_condition(most.condition) : "") + "\n";
  };
  const auto command = [&](const ExtremeOfRun& most) {
    return "    " + replay_command(arguments, sweep, most) + "\n";
  };
  std::string text;
  if (error) {
    text += line("largest squared error", *error);
    // One command for both where they are one replicate.
    const bool same = sample_size && error->condition == sample_size->condition &&
                      error->extreme.replicate == sample_size->extreme.replicate;
    if (!same) text += command(*error);
  }
  if (sample_size) {
    text += line("least effective sample size", *sample_size) + command(*sample_size);
  }
  return text;
}

void print_run(const RunArguments& arguments, const Scenario& scenario, const RunResult& result,
               const RunReport& report) {
  if (arguments.json == "-") {
    summary_writer(scenario, result, report)([](std::string_view text) { std::cout << text; });
  } else {
    std::cout << shown(result_table(scenario, result, report.indices));
    if (!report.theory.empty()) {
      std::cout << "\n" << shown(comparison_table(scenario, report.theory));
    }
    const std::string extremes = arguments.out ? extremes_text(result, arguments) : "";
    if (!extremes.empty()) std::cout << "\n" << shown(extremes);
  }
  finish_standard_output();
}

/// The closed forms of --compare. Where there are none, simulation is no other way.
std::vector<Theory> theories_to_compare(const Scenario& scenario, int threads,
                                        const Session& session) {
  try {
    return compute_theories(scenario, TheorySource::automatic, threads, session.stop_hook());
  } catch (const InvalidInput& error) {
    std::string message = error.what();
    const auto advice = message.find(simulation_instead);
    if (advice == std::string::npos) throw;
    message.resize(advice);
    throw InvalidInput(message + " - leave out --compare");
  }
}

ExitCode simulate(const RunArguments& arguments, const std::shared_ptr<const Scenario>& shared,
                  Session& session, RunOptions& options) {
  const Scenario& scenario = *shared;
  std::optional<OutputFolder> folder;
  claim_files(folder, arguments, scenario);
  std::optional<Checkpoint> begun;
  if (arguments.resume) {
    begun = begun_in(*folder, arguments, scenario, [&](const std::string& line, bool warns) {
      if (warns || !arguments.quiet) std::cerr << "headlab: " << line << "\n";
    });
  }
  if (begun) options.begun = &*begun;
  // Before the simulation: where no closed form applies nothing is simulated.
  const int threads = thread_count(session.threads);
  std::vector<Theory> theories;
  if (arguments.compare) {
    theories = theories_to_compare(scenario, threads, session);
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
      options.checkpoint = checkpoint_of(display, "results", [&](const RunResult& so_far) {
        write_results_folder(*folder, scenario, so_far, report_of(so_far), arguments.nodes);
      });
    }
    if (options.ranks && !arguments.quiet) {
      std::cerr << "headlab: " << options.ranks->size() << " ranks, "
                << counted(static_cast<std::uint64_t>(threads), "thread") << " on this one\n";
    }
    RunResult found = run(shared, session, options);
    double seconds = begun ? -begun->seconds() : 0;
    for (const ConditionResult& one : found.conditions) seconds += one.seconds;
    display.finish(found.outcome.complete ? "done in " + duration_text(seconds) : "");
    for (const std::string& note : found.notes) std::cerr << "headlab: " << note << "\n";
    report = report_of(found);
    // A run that has nothing to keep leaves the results of an earlier one.
    if (found.conditions.empty()) return found;
    files = write_run(arguments, folder, scenario, found, report, session, problem);
    return found;
  });
  print_run(arguments, scenario, result, report);
  if (problem) std::rethrow_exception(problem);
  if (const std::string refused = refused_controls(result); !refused.empty()) {
    throw RunFailed(refused);
  }
  const std::string where = files.empty() ? "" : " in " + files;
  // Without anything kept, a run that was to go on was stopped while it learned its heads again.
  const std::string on = folder && arguments.nodes && !result.conditions.empty()
                             ? "; --resume continues"
                         : begun ? "; what was there stays"
                                 : "";
  if (result.outcome.complete && !files.empty() && !arguments.quiet) {
    std::cerr << "headlab: wrote " << files << "\n";
  }
  return ended(result.outcome, "kept " + kept_text(scenario, result) + where + on);
}

ExitCode start_run(const RunArguments& arguments) {
  Session session = session_of(arguments);
  if (arguments.scenario.empty()) {
    throw InvalidInput("run: no scenario given - write headlab run SCENARIO.toml");
  }
  require_run_arguments(arguments);
  if (arguments.shard) require_fits_shard(arguments);
  const auto shared =
      std::make_shared<const Scenario>(read_supervised(arguments.scenario, arguments, session));
  RunOptions options{.until = arguments.until, .references = references_of(arguments, *shared)};
  if (arguments.checkpoint) options.checkpoint_seconds = arguments.checkpoint->seconds;
  if (!arguments.quiet) say_claims(*shared, arguments.scenario);
  if (arguments.shard) return run_shard(arguments, shared, session);
  options.ranks = ranks_of_job();
  if (options.ranks && !arguments.threads) session.threads = threads_of_this_rank();
  if (options.ranks && !options.ranks->leads()) {
    if (!arguments.dry_run) run(shared, session, {.ranks = options.ranks});
    return ExitCode::done;
  }
  if (arguments.dry_run) return dry_run(arguments, *shared, session);
  return simulate(arguments, shared, session, options);
}

}  // namespace

Command run_command() {
  return make_command("run", "Simulate a scenario", start_run);
}

}  // namespace headlab::tools
