// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/run.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/summary_json.h"
#include "engine/run/resume.h"
#include "kernels/parallel_for.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/condition_indices.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signal.h"
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

/// Writes the summary part by part.
using Summary = std::function<void(const TextSink&)>;

/// Writes what --out gets; the small file first: where the disk is full it may still fit.
void write_folder(const OutputFolder& folder, const Study& study, const RunResult& result,
                  const std::vector<ConditionIndices>& indices, const Summary& summary) {
  write_atomically(folder.file("summary.json"), summary);
  write_results(folder.file("results.nc"), study, result, indices, provenance());
}

}  // namespace

int command_run(const RunArguments& arguments) {
  RunOptions options = run_options(arguments);
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
    theories = compute_theories(study, TheorySource::automatic, thread_count(options.threads));
  }

  options.stop = stop_on_signals();
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.quiet);
  if (!arguments.quiet) {
    options.progress = [&](const Progress& progress) { display.show(progress); };
  }
  auto theory_of = [&](const RunResult& result) {
    if (!arguments.compare) return std::vector<ComputedCondition>();
    return compared_conditions(result, theories);
  };
  if (folder) {
    options.checkpoint = [&](const RunResult& result) {
      try {
        const std::vector<ConditionIndices> indices = condition_indices(result);
        const std::vector<ComputedCondition> theory = theory_of(result);
        write_folder(*folder, study, result, indices, [&](const TextSink& out) {
          write_summary_json(out, study, result, indices, provenance(), theory);
        });
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
  RunResult result;
  try {
    result = run(study, options);
  } catch (...) {
    display.finish("");
    throw;
  }
  double seconds = -seconds_before;
  for (const ConditionResult& condition : result.conditions) seconds += condition.seconds;
  display.finish(result.complete ? "done in " + duration_text(seconds) : "");
  for (const std::string& note : result.notes) std::cerr << "headlab: " << note << "\n";

  const std::vector<ConditionIndices> indices = condition_indices(result);
  const std::vector<ComputedCondition> theory = theory_of(result);
  const Summary summary = [&](const TextSink& out) {
    write_summary_json(out, study, result, indices, provenance(), theory);
  };
  // Where a file cannot be written after hours of work, standard output still gets the results.
  std::string files;
  std::exception_ptr problem;
  // A run that has nothing to keep leaves the results of an earlier one.
  const bool keeps = !result.conditions.empty();
  try {
    if (folder && keeps) {
      write_folder(*folder, study, result, indices, summary);
      files = folder->file("results.nc") + ", " + folder->file("summary.json");
    }
    if (arguments.json && !json_to_standard_output && keeps) {
      write_atomically(*arguments.json, summary);
      files += (files.empty() ? "" : ", ") + *arguments.json;
    }
  } catch (const CouldNotFinish&) {
    problem = std::current_exception();
  }
  end_on_signals();
  if (json_to_standard_output) {
    summary([](std::string_view text) { std::cout << text; });
  } else {
    std::cout << result_table(study, result, indices)
              << (theory.empty() ? "" : "\n" + comparison_table(study, theory));
  }
  finish_standard_output();
  if (problem) std::rethrow_exception(problem);

  const std::string where = files.empty() ? "" : " in " + files;
  // Without anything kept, a run that was to go on was stopped while it learned its heads again.
  const std::string on = folder && keeps ? "; --resume goes on"
                         : begun         ? "; what was there stays"
                                         : "";
  if (result.interrupted) {
    std::cerr << "headlab: interrupted: kept " << kept(study, result) << where << on << "\n";
    return 1;
  }
  if (!result.complete) {
    std::cerr << "headlab: --max-time reached: kept " << kept(study, result) << where << on << "\n";
  } else if (!files.empty() && !arguments.quiet) {
    std::cerr << "headlab: wrote " << files << "\n";
  }
  return 0;
}

}  // namespace headlab::tools
