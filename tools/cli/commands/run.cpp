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

/// "1234 of 20000 replicates", and of which conditions where there are several: those that were
/// under way when the run stopped, or else the last one.
std::string kept(const Scenario& scenario, const RunResult& result) {
  if (result.conditions.empty()) return "nothing";
  std::vector<std::size_t> stopped;
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const std::uint64_t replicates = result.conditions[i].estimates.replicates;
    if (replicates > 0 && replicates < result.conditions[i].condition->replicates) {
      stopped.push_back(i);
    }
  }
  if (stopped.empty()) stopped = {result.conditions.size() - 1};
  const ConditionResult& first = result.conditions[stopped.front()];
  std::string text = std::to_string(first.estimates.replicates) + " of " +
                     std::to_string(first.condition->replicates) + " replicates";
  if (scenario.conditions.size() > 1) {
    text += " of " + conditions_text(stopped.front(), stopped.back(), stopped.size()) + " of " +
            std::to_string(scenario.conditions.size());
  }
  return text;
}

/// True where two paths lead to one file, which need not be there.
bool same_place(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::weakly_canonical(a, none) == std::filesystem::weakly_canonical(b, none);
}

bool is_there(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

/// Whether the summary at `path` says that its run is not complete.
bool is_of_unfinished_run(const std::string& path) {
  // The key is among the first, and a summary may be large.
  std::string text(std::size_t{1} << 16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.find("\"complete\": false") != std::string::npos;
}

/// --resume replaces only what it continues. The summary of an unfinished run is no loss: a crash
/// may leave it alone, before the first results.nc.
void refuse_what_no_run_resumes(const OutputFolder& folder, const std::string& directory) {
  std::string found = data_set_in(directory);
  const std::string summary = folder.file("summary.json");
  if (found.empty() && is_there(summary) && !is_of_unfinished_run(summary)) found = "summary.json";
  if (found.empty()) return;
  throw InvalidInput("--resume: " + one_line(folder.file(found)) +
                     ": is there, but no results.nc to resume from - choose another folder, or "
                     "write --overwrite instead to replace it");
}

/// An earlier run that --resume finds in the folder, if there is one.
std::optional<Checkpoint> begun_in(const OutputFolder& folder, const Scenario& scenario,
                                   const RunArguments& arguments) {
  const bool quiet = arguments.quiet;
  const std::string path = folder.file("results.nc");
  if (!is_there(path)) {
    refuse_what_no_run_resumes(folder, *arguments.out);
    if (!quiet) std::cerr << "headlab: nothing to resume in " << path << ": starts from zero\n";
    return std::nullopt;
  }
  if (!std::filesystem::is_regular_file(path)) {
    throw InvalidInput("--resume: " + path + ": is not a regular file - choose another folder");
  }
  Checkpoint begun = read_checkpoint(path, scenario, provenance());
  const std::string summary = folder.file("summary.json");
  if (results_id_of_summary(summary) != results_id_of_netcdf(path)) {
    std::cerr << "headlab: " << summary
              << (is_there(summary)
                      ? " is of another state of the run than " + path + " (results_id): "
                      : " is missing next to " + path + ": ")
              << "resumes from " << path << " and writes both\n";
  }
  std::uint64_t asked = 0;
  for (const Condition& condition : scenario.conditions) asked += condition.replicates;
  if (!quiet) {
    std::cerr << "headlab: resumes from " << begun.replicates()
              << (arguments.until ? "" : " of " + std::to_string(asked)) << " replicates in "
              << path << "\n";
  }
  return begun;
}

/// What is said of a run.
struct Report {
  std::vector<ConditionIndices> indices;
  std::vector<ComputedCondition> theory;
};

/// Writes the summary part by part; the arguments must outlive the writer.
auto summary_writer(const Scenario& scenario, const RunResult& result, const Report& report) {
  return [&](const TextSink& out) {
    write_summary_json(out, scenario, result, report.indices, provenance(), report.theory);
  };
}

std::string summary_text(const Scenario& scenario, const RunResult& result, const Report& report) {
  std::string text;
  summary_writer(scenario, result, report)([&](std::string_view part) { text += part; });
  return text;
}

/// Writes what --out gets. In an empty folder the small file comes first: where the disk is full it
/// may still fit. Earlier results are replaced beginning with the large file, so that a full disk
/// leaves both as they were.
void write_folder(const OutputFolder& folder, const Scenario& scenario, const RunResult& result,
                  const Report& report, bool nodes) {
  const auto write_summary = [&] {
    write_atomically(folder.file("summary.json"), summary_writer(scenario, result, report));
  };
  const bool replaces =
      is_there(folder.file("results.nc")) || is_there(folder.file("summary.json"));
  if (!replaces) write_summary();
  write_results(folder.file("results.nc"), scenario, result, report.indices, provenance(), nodes);
  if (replaces) write_summary();
}

/// The conditions that --against or --difference subtracts.
References references_of(const RunArguments& arguments, const Scenario& scenario) {
  if (arguments.against) return references_against(scenario, *arguments.against);
  if (arguments.difference) return references_by_key(scenario, *arguments.difference);
  return {};
}

/// Throws InvalidInput where differences are asked for twice, or without the nodes they need.
void require_differences_possible(const RunArguments& arguments, bool nodes) {
  if (!arguments.against && !arguments.difference) return;
  if (arguments.against && arguments.difference) {
    throw InvalidInput("--against: not with --difference - leave one of them out");
  }
  if (!nodes) {
    throw InvalidInput(std::string(arguments.against ? "--against" : "--difference") +
                       ": needs the nodes that --nodes none leaves out - leave one of them out");
  }
}

/// Whether --nodes keeps the nodes; throws InvalidInput for a word it does not know.
bool keeps_nodes(const RunArguments& arguments) {
  if (arguments.nodes != "all" && arguments.nodes != "none") {
    throw InvalidInput("--nodes: \"" + one_line(arguments.nodes) + "\" is unknown" +
                       suggestion(arguments.nodes, {"all", "none"}));
  }
  if (arguments.nodes == "all") return true;
  if (!arguments.out) throw InvalidInput("--nodes: needs --out DIR, the folder with the results");
  if (arguments.resume) {
    throw InvalidInput(
        "--nodes none: leaves out the nodes that --resume continues from - leave one of them out");
  }
  return false;
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
  require_differences_possible(arguments, nodes);
  if (arguments.until) options.until = parse_until(*arguments.until);
  const std::vector<std::string> sets = all_sets(arguments);
  if (arguments.scenario.empty()) {
    throw InvalidInput("run: no scenario given - write headlab run SCENARIO.toml");
  }
  if (arguments.resume && arguments.overwrite) {
    throw InvalidInput(
        "--overwrite: not with --resume, which continues the results in --out - leave one of "
        "them out");
  }
  require_out(arguments.overwrite, arguments.out);
  if (arguments.shard) require_fits_shard(arguments);
  const auto shared = std::make_shared<const Scenario>(
      read_supervised(arguments.scenario, sets, session, arguments.quiet));
  const Scenario& scenario = *shared;
  options.references = references_of(arguments, scenario);
  if (!arguments.quiet) say_claims(scenario, arguments.scenario);
  if (arguments.shard) return command_run_shard(arguments, shared, session);
  if (arguments.dry_run) return dry_run(arguments, scenario, session);
  std::optional<OutputFolder> folder;
  if (arguments.out) folder.emplace(*arguments.out);
  const bool json_to_standard_output = arguments.json == "-";
  if (folder) {
    require_no_input("--out", folder->file("summary.json"), scenario.inputs);
    require_no_input("--out", folder->file("results.nc"), scenario.inputs);
  }
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
  if (!folder && (arguments.resume || arguments.checkpoint)) {
    throw InvalidInput(std::string(arguments.resume ? "--resume" : "--checkpoint") +
                       ": needs --out DIR, the folder with the results");
  }
  if (folder) {
    const std::vector<std::string> results = {"results.nc", "summary.json"};
    folder->claim(results);
    if (!arguments.resume && !arguments.overwrite) {
      folder->require_none_of(results, resume_or_overwrite);
      folder->require_none_of({data_set_in(*arguments.out)}, resume_or_overwrite);
    }
  }
  std::optional<Checkpoint> begun;
  double seconds_before = 0;
  if (arguments.resume) begun = begun_in(*folder, scenario, arguments);
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
    Report report{.indices = condition_indices(result)};
    if (arguments.compare) report.theory = compared_conditions(result, theories);
    return report;
  };
  Report report;
  std::string files;
  std::exception_ptr problem;
  const RunResult result = supervise(session, arguments, show_run, [&](ProgressDisplay& display) {
    if (folder) {
      options.checkpoint = [&](const RunResult& so_far) {
        try {
          write_folder(*folder, scenario, so_far, report_of(so_far), nodes);
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
        write_folder(*folder, scenario, found, report, nodes);
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

  const std::string where = files.empty() ? "" : " in " + files;
  // Without anything kept, a run that was to go on was stopped while it learned its heads again.
  const std::string on = folder && nodes && !result.conditions.empty() ? "; --resume continues"
                         : begun                                       ? "; what was there stays"
                                                                       : "";
  if (result.outcome.complete && !files.empty() && !arguments.quiet) {
    std::cerr << "headlab: wrote " << files << "\n";
  }
  return ended(result.outcome, "kept " + kept(scenario, result) + where + on);
}

}  // namespace headlab::tools
