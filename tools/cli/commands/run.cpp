// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/run.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/summary_json.h"
#include "engine/run/run.h"
#include "kernels/parallel_for.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/condition_indices.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/supervise.h"
#include "tools/cli/table.h"

namespace headlab::tools {
namespace {

/// "1234 of 20000 replicates", and of which conditions where there are several: those that were
/// under way when the run stopped, or else the last one.
std::string kept(const Study& study, const RunResult& result) {
  if (result.conditions.empty()) return "nothing";
  std::vector<std::size_t> stopped;
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const std::uint64_t replicates = result.conditions[i].estimates.replicates;
    if (replicates > 0 && replicates < result.conditions[i].scenario.replicates) {
      stopped.push_back(i);
    }
  }
  if (stopped.empty()) stopped = {result.conditions.size() - 1};
  const ConditionResult& first = result.conditions[stopped.front()];
  std::string text = std::to_string(first.estimates.replicates) + " of " +
                     std::to_string(first.scenario.replicates) + " replicates";
  if (study.conditions.size() > 1) {
    text += " of " + conditions_text(stopped.front(), stopped.back(), stopped.size()) + " of " +
            std::to_string(study.conditions.size());
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

/// An earlier run that --resume finds in the folder, if there is one.
std::optional<BegunRun> begun_in(const OutputFolder& folder, const Study& study, bool quiet) {
  const std::string path = folder.file("results.nc");
  if (!is_there(path)) {
    if (!quiet) std::cerr << "headlab: nothing to resume in " << path << ": starts anew\n";
    return std::nullopt;
  }
  if (!std::filesystem::is_regular_file(path)) {
    throw Refused("--resume: " + path + ": is no file - choose another folder");
  }
  BegunRun begun = read_begun(path, study, provenance());
  std::uint64_t asked = 0;
  for (const Scenario& scenario : study.conditions) asked += scenario.replicates;
  if (!quiet) {
    std::cerr << "headlab: goes on from " << begun.replicates() << " of " << asked
              << " replicates in " << path << "\n";
  }
  return begun;
}

/// What is said of a run.
struct Report {
  std::vector<ConditionIndices> indices;
  std::vector<ComputedCondition> theory;
  std::string summary;
};

/// Writes what --out gets; the small file first: where the disk is full it may still fit.
void write_folder(const OutputFolder& folder, const Study& study, const RunResult& result,
                  const Report& report) {
  write_atomically(folder.file("summary.json"), report.summary);
  write_results(folder.file("results.nc"), study, result, report.indices, provenance());
}

}  // namespace

int command_run(const RunArguments& arguments) {
  Session session = session_of(arguments);
  RunOptions options;
  if (arguments.checkpoint) {
    options.checkpoint_seconds = parse_duration("--checkpoint", *arguments.checkpoint);
  }
  const std::vector<std::string> sets = all_sets(arguments);
  if (arguments.scenario.empty()) {
    throw Refused("run: no scenario given - write headlab run SCENARIO.toml");
  }
  const Study study = read_study(arguments.scenario, sets);
  std::optional<OutputFolder> folder;
  if (arguments.out) folder.emplace(*arguments.out);
  const bool json_to_standard_output = arguments.json == "-";
  if (folder) {
    require_no_input("--out", folder->file("summary.json"), study.inputs);
    require_no_input("--out", folder->file("results.nc"), study.inputs);
  }
  if (arguments.json && !json_to_standard_output) {
    require_json_writable(*arguments.json, study.inputs);
    if (folder && same_place(*arguments.json, folder->file("results.nc"))) {
      throw Refused("--json: is where --out writes results.nc - choose another place");
    }
  }
  if (!folder && (arguments.resume || arguments.checkpoint)) {
    throw Refused(std::string(arguments.resume ? "--resume" : "--checkpoint") +
                  ": needs --out DIR, the folder with the results");
  }
  if (folder) folder->claim({"results.nc", "summary.json"});
  std::optional<BegunRun> begun;
  double seconds_before = 0;
  if (arguments.resume) begun = begun_in(*folder, study, arguments.quiet);
  if (begun) {
    options.begun = &*begun;
    seconds_before = begun->seconds();
  } else if (folder && !arguments.quiet && is_there(folder->file("results.nc"))) {
    std::cerr << "headlab: will replace the results in " << folder->file("results.nc")
              << "; --resume would go on with them\n";
  }
  // Before the simulation: where no closed form applies nothing is simulated.
  std::vector<Theory> theories;
  if (arguments.compare) {
    theories = compute_theories(study, TheorySource::automatic, thread_count(session.threads));
  }

  const auto report_of = [&](const RunResult& result) {
    Report report{.indices = condition_indices(result)};
    if (arguments.compare) report.theory = compared_conditions(result, theories);
    report.summary = summary_json(study, result, report.indices, provenance(), report.theory);
    return report;
  };
  Report report;
  std::string files;
  std::exception_ptr problem;
  const RunResult result = supervise(session, arguments, show_run, [&](ProgressDisplay& display) {
    if (folder) {
      options.checkpoint = [&](const RunResult& so_far) {
        try {
          write_folder(*folder, study, so_far, report_of(so_far));
          return;
        } catch (const CouldNotFinish& error) {
          display.finish("");
          std::cerr << "headlab: " << error.what();
        } catch (const std::bad_alloc&) {
          display.finish("");
          std::cerr << "headlab: no memory to write the results so far";
        }
        std::cerr << "; the run goes on\n";  // there may be room at the end
      };
    }
    RunResult found = run(study, session, options);
    double seconds = -seconds_before;
    for (const ConditionResult& condition : found.conditions) seconds += condition.seconds;
    display.finish(found.outcome.complete ? "done in " + duration_text(seconds) : "");
    for (const std::string& note : found.notes) std::cerr << "headlab: " << note << "\n";

    report = report_of(found);
    // A run that has nothing to keep leaves the results of an earlier one.
    if (found.conditions.empty()) return found;
    // Where a file cannot be written after hours of work, standard output still gets the results.
    try {
      if (folder) {
        write_folder(*folder, study, found, report);
        files = folder->file("results.nc") + ", " + folder->file("summary.json");
      }
      if (arguments.json && !json_to_standard_output) {
        write_atomically(*arguments.json, report.summary);
        files += (files.empty() ? "" : ", ") + *arguments.json;
      }
    } catch (const CouldNotFinish&) {
      problem = std::current_exception();
    }
    return found;
  });
  std::cout << (json_to_standard_output
                    ? report.summary
                    : result_table(study, result, report.indices) +
                          (report.theory.empty() ? ""
                                                 : "\n" + comparison_table(study, report.theory)));
  finish_standard_output();
  if (problem) std::rethrow_exception(problem);

  const std::string where = files.empty() ? "" : " in " + files;
  // Without anything kept, a run that was to go on was stopped while it learned its heads again.
  const std::string on = folder && !result.conditions.empty() ? "; --resume goes on"
                         : begun                              ? "; what was there stays"
                                                              : "";
  if (result.outcome.complete && !files.empty() && !arguments.quiet) {
    std::cerr << "headlab: wrote " << files << "\n";
  }
  return ended(result.outcome, "kept " + kept(study, result) + where + on);
}

}  // namespace headlab::tools
