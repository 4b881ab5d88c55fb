// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <system_error>

#include "engine/files/atomic_file.h"
#include "engine/files/folder.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/summary_json.h"
#include "engine/run/memory.h"
#include "engine/run/run.h"
#include "engine/run/setup.h"
#include "engine/run/units.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/shards/cut.h"
#include "engine/shards/merge.h"
#include "engine/shards/shard_files.h"
#include "kernels/counted.h"
#include "kernels/cpu/backend.h"
#include "kernels/host.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/results_folder.h"
#include "tools/cli/table.h"
#include "validation/theory/controls/control_means.h"

namespace headlab::tools {
namespace {

namespace fs = std::filesystem;

std::uint64_t replicates_of(const Share& share) {
  std::uint64_t sum = 0;
  for (const SharePart& part : share.parts) sum += part.range.replicates;
  return sum;
}

std::uint64_t replicates_of(const RunResult& result) {
  std::uint64_t sum = 0;
  for (const ConditionResult& one : result.conditions) sum += one.tree.count();
  return sum;
}

/// What bits depend on, besides the program.
std::string bits_depend_on(const Machine& machine) {
  return machine.backend + "/" + machine.simd +
         (machine.backend == "cuda" ? " on " + machine.device : "");
}

/// Throws InvalidInput where the folder has shards of another number, which would overlap.
void require_no_other_cut(const std::string& folder, std::uint64_t shards) {
  for (const std::string& path : shard_paths({folder})) {
    const std::string name = fs::path(path).filename().string();
    const std::uint64_t there = std::stoull(name.substr(name.rfind('_') + 1));
    if (there == shards) continue;
    throw InvalidInput("--shard: " + one_line(folder) + " has shards of " + std::to_string(there) +
                       ", not of " + std::to_string(shards) + " - write --shard I/" +
                       std::to_string(there) + ", or choose another folder");
  }
}

/// Throws InvalidInput where another shard in the folder could not be merged with this one. One is
/// asked: a task does not wait for the files of thousands.
void require_same_study(const std::string& folder, const std::string& own, const Share& share,
                        const Machine& machine) {
  for (const std::string& path : shard_paths({folder})) {
    if (fs::path(path).filename() == own) continue;
    std::optional<ShardFile> other;
    try {
      other = read_shard_file(path);
    } catch (const InvalidInput&) {
      continue;  // merge names it
    }
    const auto require = [&](bool same, const std::string& problem) {
      if (same) return;
      throw InvalidInput("--shard: " + one_line(path) + ": " + problem +
                         " - choose another folder");
    };
    require(other->share.study == share.study,
            "is of another scenario, seed or number of replicates");
    require(bits_depend_on(other->machine) == bits_depend_on(machine),
            "is by " + one_line(bits_depend_on(other->machine)) + ", and this one by " +
                bits_depend_on(machine));
    return;
  }
}

/// The folder that paths in the scenario are relative to.
std::string directory_of(const Scenario& scenario) {
  return fs::absolute(fs::path(scenario.file)).parent_path().string();
}

/// Where heads, weights and controls are found again for the results of other machines.
void choose_preparing_backend(Session& session, const Machine& machine) {
  session.backend = machine.backend;
  if (machine.backend != "cpu") return;
  try {
    use_cpu_simd(machine.simd);
  } catch (const std::invalid_argument& error) {
    throw InvalidInput("merge: the shards are by " + one_line(machine.simd) + ", and " +
                       error.what() + " - merge on a machine that has it");
  }
}

/// Writes both files of a run, the summary last: it never stands without what it is of.
void write_merged(const OutputFolder& folder, const Scenario& scenario, const RunResult& result,
                  const std::vector<ConditionIndices>& indices) {
  write_results(folder.file("results.nc"), scenario, result, indices, provenance());
  write_atomically(folder.file("summary.json"), [&](const TextSink& out) {
    write_summary_json(out, scenario, result, indices, provenance());
  });
}

/// The file that a task locks while it writes another one.
std::string lock_name_of(const std::string& name) {
  return ".headlab-lock-" + name;
}

/// "3/8": shards that are computed and have no file yet.
std::vector<std::string> shards_without_files(const std::string& folder) {
  std::vector<std::string> found;
  for (const std::string& lock : names_in(folder)) {
    const std::string start = lock_name_of("");
    if (!lock.starts_with(start)) continue;
    const std::string name = lock.substr(start.size());
    const auto shard = shard_of_name(name);
    if (!shard || fs::exists(fs::path(folder) / name) || !is_claimed(folder, lock)) continue;
    found.push_back(std::to_string(shard->first) + "/" + std::to_string(shard->second));
  }
  std::ranges::sort(found);
  return found;
}

/// State of a file that a task writes.
std::string state_of(const std::string& folder, const std::string& name, bool complete) {
  if (complete) return "complete";
  return is_claimed(folder, lock_name_of(name)) ? "running" : "not complete";
}

/// Prints what the folder has of a command of independent parts; false where it has nothing.
bool show_units(const std::string& folder) {
  const std::vector<std::string> names = units_files_in(folder);
  if (names.empty()) return false;
  std::map<std::uint64_t, std::uint64_t> there;  // files of each number of shards
  std::vector<std::string> shards, states, commands, counts;
  for (const std::string& name : names) {
    const UnitFile file = read_unit_file("status", (fs::path(folder) / name).string());
    shards.push_back(std::to_string(file.shard) + "/" + std::to_string(file.shards));
    states.push_back(state_of(folder, name, file.complete));
    ++there[file.shards];
    commands.push_back(one_line(file.command, 40));
    counts.push_back(std::to_string(file.units.size()));
  }
  Columns columns;
  columns.add("shard", shards, true);
  columns.add("state", states);
  columns.add("of", commands);
  columns.add("results kept", counts, true);
  std::cout << columns.sweep_text("  ");
  for (const auto& [of, count] : there) {
    if (count >= of) continue;
    std::cout << "  " << of - count << " of " << of << " shards have kept nothing yet\n";
  }
  finish_standard_output();
  return true;
}

/// Throws InvalidInput where the folders have shards of a command that joins them itself.
void reject_units(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::vector<std::string> names = units_files_in(folder);
    if (names.empty()) continue;
    const UnitFile file = read_unit_file("merge", (fs::path(folder) / names.front()).string());
    throw InvalidInput("merge: " + one_line(folder) + " has shards of " +
                       one_line(file.command, 60) + " - write that command with --out " +
                       shell_word(folder) + " --resume, which joins them");
  }
}

}  // namespace

void require_fits_shard(const RunArguments& arguments) {
  const auto reject_with_shard = [](const std::string& option, const std::string& advice) {
    throw InvalidInput(option + ": not with --shard - " + advice);
  };
  if (!arguments.out) throw InvalidInput("--shard: needs --out DIR, the folder of all shards");
  const std::string later = "write it for the merged results, with headlab run --resume";
  if (!arguments.until.empty()) {
    reject_with_shard("--until", "one shard does not know the standard errors of all");
  }
  if (arguments.against) reject_with_shard("--against", later);
  if (arguments.difference) reject_with_shard("--difference", later);
  if (arguments.replicate_figures) reject_with_shard("--replicate-figures", later);
  if (arguments.compare) reject_with_shard("--compare", later);
  if (arguments.report) reject_with_shard("--report", "write headlab report of the merged results");
  if (arguments.table) reject_with_shard("--table", "write headlab table of the merged results");
  if (arguments.json) reject_with_shard("--json", "headlab merge writes summary.json");
  if (arguments.dry_run) reject_with_shard("--dry-run", "leave one of them out");
  if (!arguments.nodes) reject_with_shard("--nodes none", "a shard is its nodes");
}

ExitCode run_shard(const RunArguments& arguments, const std::shared_ptr<const Scenario>& scenario,
                   Session& session) {
  const ShardChoice choice = choose_shard(*arguments.shard, environment_variable);
  OutputFolder folder(*arguments.out);
  const std::string name = shard_file_name(choice.shard, choice.shards);
  const std::string path = folder.file(name);
  require_no_input("--out", path, scenario->inputs);
  folder.claim(lock_name_of(name), "another task is writing " + name,
               patience_of(arguments.resume));
  folder.share("shards");
  require_no_other_cut(*arguments.out, choice.shards);
  if (fs::exists(folder.file("results.nc"))) {
    throw InvalidInput("--shard: " + one_line(*arguments.out) +
                       " has results.nc, the results of a run - choose another folder");
  }
  folder.require_place_for({name},
                           arguments.resume || arguments.overwrite ? nullptr : resume_or_overwrite);
  Share share =
      ScenarioCut(*scenario, session.backend->plans_together()).share(choice.shard, choice.shards);
  share.chosen_by = choice.chosen_by;
  share.directory = directory_of(*scenario);
  require_same_study(*arguments.out, name, share, session.machine());
  const auto part = std::make_shared<const Scenario>(scenario_of(*scenario, share));
  const std::uint64_t asked = replicates_of(share);
  if (!arguments.quiet) {
    std::cerr << "headlab: " << shard_text(share) << " (" << share.chosen_by
              << "): " << counted(asked, "replicate") << " of " << grouped(share.parts.size())
              << " of " << counted(scenario->conditions.size(), "condition") << "\n";
  }
  std::optional<Checkpoint> begun;
  std::error_code none;
  if (arguments.resume && fs::exists(path, none)) {
    begun = read_checkpoint(path, *part, provenance(), &share);
    if (begun->replicates() == asked && read_shard_file(path).complete) {
      if (!arguments.quiet) std::cerr << "headlab: complete already: " << path << "\n";
      return ExitCode::done;
    }
    if (!arguments.quiet) {
      std::cerr << "headlab: resumes from " << begun->replicates() << " of " << asked
                << " replicates in " << path << "\n";
    }
  }
  const auto write = [&](const RunResult& result) {
    write_results(path, *part, result, {}, provenance());
  };
  if (share.parts.empty()) {
    // What the other shards are rejected for: a study is not begun with its empty ones.
    const Machine machine = session.machine();
    for (const Condition& condition : scenario->conditions) {
      check_memory(condition, *session.backend, machine.threads);
    }
    RunResult empty{.machine = session.machine(), .share = share};
    write(empty);
    return ExitCode::done;
  }
  std::optional<Setup> setup;
  if (std::ranges::any_of(part->conditions, needs_preparation)) {
    setup.emplace(folder.file(setup_file_name), share.study, bits_depend_on(session.machine()));
  }
  RunOptions options{
      .begun = begun ? &*begun : nullptr, .share = &share, .setup = setup ? &*setup : nullptr};
  if (arguments.checkpoint) {
    options.checkpoint_seconds = arguments.checkpoint->seconds;
  }
  const RunResult result = supervise(session, arguments, show_run, [&](ProgressDisplay& display) {
    options.checkpoint = checkpoint_of(display, "shard", write);
    RunResult found = run(part, session, options);
    display.finish("");
    for (const std::string& note : found.notes) std::cerr << "headlab: " << note << "\n";
    // A run that has nothing to keep leaves the results of an earlier one.
    if (!found.conditions.empty()) write(found);
    return found;
  });
  if (result.outcome.complete && !arguments.quiet) std::cerr << "headlab: wrote " << path << "\n";
  if (result.conditions.empty() && !fs::exists(path, none)) {
    return ended(result.outcome, "stopped before the first replicate of " + shard_text(share) +
                                     "; --resume continues with what is in " +
                                     folder.file(setup_file_name));
  }
  return ended(result.outcome, "kept " + grouped(replicates_of(result)) + " of " +
                                   counted(asked, "replicate") + " of " + shard_text(share) +
                                   " in " + path + "; --resume continues");
}

namespace {

struct MergeArguments : CommonArguments {
  Texts folders;
  bool allow_missing = false;

  void list(Options& options) {
    options.texts("DIR", "", "Folders with all shards of a scenario", folders);
    take(options, {"--out", "--overwrite"});
    options.flag("--allow-missing",
                 "Take what is there where shards are missing or not complete; no --resume later",
                 allow_missing);
    take(options, {"--threads", "--quiet"});
  }
};

ExitCode merge(const MergeArguments& arguments) {
  if (arguments.folders.empty()) {
    throw InvalidInput("merge: no folder given - write headlab merge DIR --out DIR2");
  }
  if (shard_paths(arguments.folders).empty()) reject_units(arguments.folders);
  if (!arguments.out) throw InvalidInput("merge: needs --out DIR, the folder of the results");
  Session session{.threads = threads_of(arguments), .control_means = control_means};
  limit(session, arguments);
  MergedShards merged = merge_shards(arguments.folders, provenance(), arguments.allow_missing,
                                     {.stop = session.stop_hook()});
  const Scenario& scenario = *merged.scenario;
  if (std::ranges::all_of(merged.run.conditions,
                          [](const CheckpointCondition& one) { return one.tree.count() == 0; })) {
    throw InvalidInput("merge: no shard in " + one_line(listed(arguments.folders)) +
                       " has replicates - wait for the first");
  }
  // Anything else that is computed here has the same bits on any machine.
  session.backend = "cpu";
  std::optional<Setup> setup;
  if (std::ranges::any_of(scenario.conditions, needs_preparation)) {
    choose_preparing_backend(session, merged.run.machine);
  }
  if (std::ranges::any_of(scenario.conditions, needs_preparation)) {
    // Of the first folder that has one: what it lacks is found again.
    for (const std::string& folder : arguments.folders) {
      const std::string path = (fs::path(folder) / setup_file_name).string();
      if (setup || !fs::exists(path)) continue;
      setup.emplace(path, merged.study, bits_depend_on(merged.run.machine), "merge");
    }
  }
  OutputFolder folder(*arguments.out);
  const std::vector<std::string> results = {"results.nc", "summary.json"};
  folder.claim();
  folder.require_place_for(results, arguments.overwrite ? nullptr : overwrite_only);
  const RunResult result = supervise(session, arguments, show_run, [&](ProgressDisplay& display) {
    RunResult found =
        run(merged.scenario, session,
            {.begun = &merged.run, .setup = setup ? &*setup : nullptr, .simulates = false});
    found.missing_shards = merged.missing;
    display.finish("");
    return found;
  });
  if (result.conditions.empty()) {
    return ended(result.outcome, "merged nothing");
  }
  const std::vector<ConditionIndices> indices = condition_indices(result);
  write_merged(folder, scenario, result, indices);
  print(shown(result_table(scenario, result, indices)));
  if (!arguments.quiet) {
    std::cerr << "headlab: wrote " << folder.file("results.nc") << ", "
              << folder.file("summary.json") << "\n";
  }
  if (merged.missing.empty()) return exit_code_of(result.outcome);
  std::cerr << "headlab: " << merged.missing << " missing or not complete: figures are of "
            << replicates_of(result) << " replicates\n";
  return ExitCode::unfinished;
}

struct StatusArguments {
  std::string folder;

  void list(Options& options) { options.text("DIR", "", "The folder of --out", folder); }
};

ExitCode status(const StatusArguments& arguments) {
  const std::string& folder = arguments.folder;
  if (folder.empty()) throw InvalidInput("status: no folder given - write headlab status DIR");
  std::vector<ShardFile> files;
  std::vector<std::string> unreadable;
  for (const std::string& path : shard_paths({folder})) {
    try {
      files.push_back(read_shard_file(path));
    } catch (const InvalidInput& error) {
      unreadable.emplace_back(error.what());
    }
  }
  const std::vector<std::string> begun = shards_without_files(folder);
  const bool has_shards = !files.empty() || !unreadable.empty() || !begun.empty();
  const bool has_units = show_units(folder);
  if (!has_shards && has_units) return ExitCode::done;
  if (!has_shards && std::filesystem::exists(std::filesystem::path(folder) / "results.nc")) {
    throw InvalidInput("status: " + one_line(folder) +
                       " holds a run that has no shards - headlab report " + shell_word(folder) +
                       " shows it, and the same headlab run with --resume goes on with it");
  }
  if (!has_shards) {
    throw InvalidInput("status: no shard in " + one_line(folder) +
                       " - write headlab run SCENARIO.toml --shard I/N --out DIR");
  }
  double done = 0, seconds = 0, work = 0;
  std::map<std::uint64_t, std::uint64_t> there;  // shards of each cut
  for (const ShardFile& file : files) {
    done += file.work_done();
    work += file.work();
    seconds += file.seconds_taken();
    ++there[file.share.shards];
  }
  const double rate = done > 0 ? seconds / done : 0;
  std::vector<std::string> shards, states, counts, taken, left;
  double longest = 0, all_left = 0;
  std::uint64_t missing = 0;
  const auto time_text = [&](double of) { return rate > 0 ? duration_text(of) : ""; };
  for (const ShardFile& file : files) {
    std::uint64_t count = 0;
    for (const std::uint64_t one : file.replicates) count += one;
    const double rest = file.complete ? 0 : (file.work() - file.work_done()) * rate;
    shards.push_back(std::to_string(file.share.shard) + "/" + std::to_string(file.share.shards));
    states.push_back(state_of(folder, fs::path(file.path).filename().string(), file.complete));
    counts.push_back(grouped(count) + " of " + grouped(replicates_of(file.share)));
    taken.push_back(duration_text(file.seconds_taken()));
    left.push_back(file.complete ? "" : time_text(rest));
    longest = std::max(longest, rest);
    all_left += rest;
  }
  for (const std::string& shard : begun) {
    shards.push_back(shard);
    states.emplace_back("running");
    for (auto* column : {&counts, &taken, &left}) column->emplace_back();
  }
  if (there.size() == 1)
    missing = there.begin()->first - std::min(there.begin()->first, files.size());
  missing -= std::min<std::uint64_t>(missing, unreadable.size());
  if (missing > 0) {
    // Shards are of one cost, but for roundings.
    const double each = work / static_cast<double>(files.size()) * rate;
    all_left += each * static_cast<double>(missing);
    longest = std::max(longest, each);
  }
  Columns columns;
  columns.add("shard", shards, true);
  columns.add("state", states);
  columns.add("replicates", counts, true);
  columns.add("time", taken, true);
  columns.add("left", left, true);
  std::cout << columns.sweep_text("  ");
  if (missing > begun.size()) {
    std::cout << "  " << missing - begun.size() << " of " << there.begin()->first
              << " shards not begun\n";
  }
  if (all_left > 0) {
    std::cout << "  left: " << duration_text(all_left) << " one after the other, "
              << duration_text(longest) << " all at once\n";
  }
  finish_standard_output();
  for (const ShardFile& file : files) {
    std::error_code error;
    const auto written = fs::last_write_time(file.path, error);
    if (error || written <= fs::file_time_type::clock::now() + std::chrono::minutes(1)) continue;
    std::cerr << "headlab: " << one_line(file.path)
              << ": was written in the future: a clock was set back, which changes no result\n";
  }
  if (!unreadable.empty()) throw InvalidInput("status: " + unreadable.front());
  return ExitCode::done;
}

}  // namespace

Command merge_command() {
  return make_command("merge", "Join the shards of headlab run --shard", merge);
}

Command status_command() {
  return make_command("status", "Show the shards in a folder and the time they still take", status);
}

}  // namespace headlab::tools
