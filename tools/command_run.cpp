// SPDX-License-Identifier: Apache-2.0
#include "tools/command_run.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <signal.h>
#include <time.h>

#include "engine/atomic_file.h"
#include "engine/error.h"
#include "engine/provenance.h"
#include "engine/results_netcdf.h"
#include "engine/summary_json.h"
#include "tools/condition_indices.h"
#include "tools/figure_text.h"
#include "tools/output_folder.h"
#include "tools/progress.h"
#include "tools/table.h"

namespace headlab::tools {
namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

std::atomic<std::int64_t> asked_at = 0;  ///< seconds of the monotonic clock
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// The first signal asks to stop. One that comes two seconds later ends the program at once; sooner
/// it is the same request again: timeout(1) signals the program and then its whole group.
extern "C" void ask_to_stop(int number) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!stop_asked) {
    asked_at = now.tv_sec;
    stop_asked = true;
  } else if (now.tv_sec - asked_at > 1) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

/// Lets SIGINT, SIGTERM and SIGHUP stop the run after the block under way.
void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = ask_to_stop;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  // A file size limit is then an error of write(), which says so, and not a killed program.
  signal(SIGXFSZ, SIG_IGN);
}

/// After the run nothing looks at stop_asked any more: a signal ends the program again.
void end_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
}

/// "1234 of 20000 replicates", and of which condition where there are several.
std::string kept(const Study& study, const RunResult& result) {
  if (result.conditions.empty()) return "nothing";
  const ConditionResult& last = result.conditions.back();
  std::string text = std::to_string(last.estimates.replicates) + " of " +
                     std::to_string(last.scenario.replicates) + " replicates";
  if (study.conditions.size() > 1) {
    text += " of condition " + std::to_string(result.conditions.size()) + " of " +
            std::to_string(study.conditions.size());
  }
  return text;
}

/// Flushes standard output, which may be a full disk.
void finish_standard_output() {
  if (!std::cout.flush()) throw CouldNotFinish("standard output: cannot be written");
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
  if (arguments.json && !json_to_standard_output) {
    std::error_code none;
    if (std::filesystem::equivalent(*arguments.json, arguments.scenario, none)) {
      throw Refused("--json " + *arguments.json + ": is the scenario itself - name another file");
    }
    require_writable("--json", *arguments.json);
  }

  stop_on_signals();
  options.stop = &stop_asked;
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.quiet);
  if (!arguments.quiet) {
    options.progress = [&](const Progress& progress) { display.show(progress); };
  }
  RunResult result;
  try {
    result = run(study, options);
  } catch (...) {
    display.finish("");
    throw;
  }
  double seconds = 0;
  for (const ConditionResult& condition : result.conditions) seconds += condition.seconds;
  end_on_signals();
  display.finish(result.complete ? "done in " + duration_text(seconds) : "");
  for (const std::string& note : result.notes) std::cerr << "headlab: " << note << "\n";

  const Provenance program = provenance();
  const std::vector<ConditionIndices> indices = condition_indices(result);
  const std::string summary = summary_json(study, result, indices, program);
  // Where a file cannot be written after hours of work, standard output still gets the results.
  std::string files;
  std::exception_ptr problem;
  try {
    if (folder) {
      // The small file first: where the disk is full it may still fit.
      write_atomically(folder->file("summary.json"), summary);
      write_results(folder->file("results.nc"), study, result, indices, program);
      files = folder->file("results.nc") + ", " + folder->file("summary.json");
    }
    if (arguments.json && !json_to_standard_output) {
      write_atomically(*arguments.json, summary);
      files += (files.empty() ? "" : ", ") + *arguments.json;
    }
  } catch (const CouldNotFinish&) {
    problem = std::current_exception();
  }
  std::cout << (json_to_standard_output ? summary : result_table(study, result, indices));
  finish_standard_output();
  if (problem) std::rethrow_exception(problem);

  const std::string where = files.empty() ? "" : " in " + files;
  if (result.interrupted) {
    std::cerr << "headlab: interrupted: kept " << kept(study, result) << where << "\n";
    return 1;
  }
  if (!result.complete) {
    std::cerr << "headlab: --max-time reached: kept " << kept(study, result) << where << "\n";
  } else if (!files.empty() && !arguments.quiet) {
    std::cerr << "headlab: wrote " << files << "\n";
  }
  return 0;
}

}  // namespace headlab::tools
