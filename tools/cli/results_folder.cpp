// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/results_folder.h"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/memory_lack.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "engine/results/results_id.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/results_scenario.h"
#include "engine/results/summary_json.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/shards/shard_files.h"
#include "kernels/counted.h"
#include "kernels/host.h"

namespace headlab::tools {
namespace {

constexpr const char* result_files[] = {"results.nc", "summary.json"};

bool is_there(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

/// --resume replaces only what it continues. No crash leaves a summary alone: it is written last.
void refuse_what_no_run_resumes(const OutputFolder& folder, const std::string& directory) {
  std::string found = data_set_in(directory);
  const std::string summary = folder.file("summary.json");
  if (found.empty() && is_there(summary)) found = "summary.json";
  if (found.empty()) return;
  throw InvalidInput("--resume: " + one_line(folder.file(found)) +
                     ": is there, but no results.nc to resume from - choose another folder, or "
                     "write --overwrite instead to replace it");
}

/// Throws InvalidInput where differences are asked for twice, or without the nodes they need.
void require_differences_possible(const RunArguments& arguments) {
  if (!arguments.against && !arguments.difference) return;
  if (arguments.against && arguments.difference) {
    throw InvalidInput("--against: not with --difference - leave one of them out");
  }
  if (!arguments.nodes) {
    throw InvalidInput(std::string(arguments.against ? "--against" : "--difference") +
                       ": needs the nodes that --nodes none leaves out - leave one of them out");
  }
}

/// What is said where another run writes to the folder.
std::string busy_text() {
  std::string text = OutputFolder::another_writes;
  const char* const ranks = environment_variable("OMPI_COMM_WORLD_SIZE");
  if (ranks != nullptr && std::string_view(ranks) != "1") {
    text += ", a rank of this job it seems: this program runs as ranks with --shard auto alone";
  }
  return text;
}

}  // namespace

void require_run_arguments(const RunArguments& arguments) {
  if (!arguments.nodes && !arguments.out) {
    throw InvalidInput("--nodes: needs --out DIR, the folder with the results");
  }
  if (!arguments.nodes && arguments.resume) {
    throw InvalidInput(
        "--nodes none: leaves out the nodes that --resume continues from - leave one of them out");
  }
  require_differences_possible(arguments);
  if (arguments.first_replicates && !arguments.replicate_figures) {
    throw InvalidInput("--first-replicates: needs --replicate-figures FILE, which they stand in");
  }
  if (arguments.resume && arguments.overwrite) {
    throw InvalidInput(
        "--overwrite: not with --resume, which continues the results in --out - leave one of "
        "them out");
  }
  require_out(arguments.overwrite, arguments.out);
  if (!arguments.out && (arguments.resume || arguments.checkpoint)) {
    throw InvalidInput(std::string(arguments.resume ? "--resume" : "--checkpoint") +
                       ": needs --out DIR, the folder with the results");
  }
}

void require_no_results_among_inputs(const OutputFolder& folder, const Scenario& scenario) {
  for (const char* name : result_files) {
    require_no_input("--out", folder.file(name), scenario.inputs);
  }
}

void claim_results(OutputFolder& folder, const std::string& path, const Scenario& scenario,
                   bool resume, bool overwrite) {
  require_no_results_among_inputs(folder, scenario);
  const std::vector<std::string> results(std::begin(result_files), std::end(result_files));
  folder.claim(OutputFolder::whole_folder, busy_text());
  if (!is_there(folder.file("results.nc")) && !shard_paths({path}).empty()) {
    throw InvalidInput("--out: " + one_line(path) + " has shards of a study - join them with " +
                       "headlab merge " + shell_word(path) +
                       " --out DIR, or choose another folder");
  }
  folder.require_place_for(results, resume || overwrite ? nullptr : resume_or_overwrite);
  if (resume || overwrite) return;
  if (const std::string found = data_set_in(path); !found.empty()) {
    require_nothing_at(folder.file(found), resume_or_overwrite);
  }
}

std::optional<Checkpoint> begun_in(const OutputFolder& folder, const RunArguments& arguments,
                                   const Scenario& scenario,
                                   const std::function<void(const std::string&, bool)>& say) {
  const std::string path = folder.file("results.nc");
  if (!is_there(path)) {
    refuse_what_no_run_resumes(folder, *arguments.out);
    say("nothing to resume in " + path + ": starts from zero", false);
    return std::nullopt;
  }
  if (!std::filesystem::is_regular_file(path)) {
    throw InvalidInput("--resume: " + path + ": is not a regular file - choose another folder");
  }
  Checkpoint begun = read_checkpoint(path, scenario, provenance());
  const std::string summary = folder.file("summary.json");
  if (results_id_of_summary(summary) != results_id_of_netcdf(path)) {
    say(summary +
            (is_there(summary) ? " is of another state of the run than " + path + " (results_id): "
                               : " is missing next to " + path + ": ") +
            "resumes from " + path + " and writes both",
        true);
  }
  std::uint64_t asked = 0;
  for (const Condition& condition : scenario.conditions) asked += condition.replicates;
  say("resumes from " +
          (arguments.until.empty()
               ? grouped(begun.replicates()) + " of " + counted(asked, "replicate")
               : counted(begun.replicates(), "replicate")) +
          " in " + path,
      false);
  return begun;
}

std::function<void(const TextSink&)> summary_writer(const Scenario& scenario,
                                                    const RunResult& result,
                                                    const RunReport& report) {
  return [&](const TextSink& out) {
    write_summary_json(out, scenario, result, report.indices, provenance(), report.theory);
  };
}

void write_results_folder(const OutputFolder& folder, const Scenario& scenario,
                          const RunResult& result, const RunReport& report, bool nodes) {
  // --resume reads results.nc: with it alone a run goes on, with a summary alone none does.
  write_results(folder.file("results.nc"), scenario, result, report.indices, provenance(), nodes);
  write_atomically(folder.file("summary.json"), summary_writer(scenario, result, report));
}

std::function<void(const RunResult&)> checkpoint_of(ProgressDisplay& display,
                                                    const std::string& what,
                                                    std::function<void(const RunResult&)> write) {
  return [&display, what, write = std::move(write)](const RunResult& so_far) {
    try {
      write(so_far);
      return;
    } catch (const RunFailed& error) {
      display.finish("");
      std::cerr << "headlab: " << error.what();
    } catch (const std::bad_alloc&) {
      forget_lack_of_memory();
      display.finish("");
      std::cerr << "headlab: no memory to write the " << what << " so far";
    }
    std::cerr << "; the run continues\n";
  };
}

namespace {

/// The shard that a file says it is, if any.
std::optional<Share> share_of(const std::string& path) {
  try {
    const NetcdfInput file(path);
    return read_share(file.root());
  } catch (const NetcdfError&) {
    return std::nullopt;
  }
}

}  // namespace

void require_merged(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const auto reject_shards = [&](const std::string& what, const std::string& folder) {
    throw InvalidInput(one_line(path) + ": " + what +
                       " of a study - join them with headlab merge " + shell_word(folder) +
                       " --out DIR");
  };
  if (fs::is_regular_file(path, none)) {
    if (const std::optional<Share> share = share_of(path)) {
      const std::string folder = fs::path(path).parent_path().string();
      reject_shards(
          "is shard " + std::to_string(share->shard) + " of " + std::to_string(share->shards),
          folder.empty() ? "." : folder);
    }
    return;
  }
  if (!fs::is_directory(path, none) || fs::exists(fs::path(path) / "results.nc", none)) return;
  if (!shard_paths({path}).empty()) reject_shards("has shards", path);
}

std::string kept_text(const Scenario& scenario, const RunResult& result) {
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
  std::string text = grouped(first.estimates.replicates) + " of " +
                     counted(first.condition->replicates, "replicate");
  if (scenario.conditions.size() > 1) {
    text += " of " + conditions_text(stopped.front(), stopped.back(), stopped.size()) + " of " +
            std::to_string(scenario.conditions.size());
  }
  return text;
}

}  // namespace headlab::tools
