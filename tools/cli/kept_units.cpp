// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/kept_units.h"

#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_writer.h"
#include "engine/files/sha256.h"
#include "engine/run/forecast.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "engine/shards/cut.h"
#include "kernels/host.h"
#include "kernels/plan.h"

namespace headlab::tools {
namespace {

void require_unit_options(const CommonArguments& run) {
  if (!run.out) {
    for (const auto& [given, option] :
         {std::pair(run.shard.has_value(), "--shard"), std::pair(run.resume, "--resume"),
          std::pair(run.checkpoint.has_value(), "--checkpoint")}) {
      if (given) {
        throw InvalidInput(std::string(option) + ": needs --out DIR, the folder of what is kept");
      }
    }
  }
  if (run.resume && run.overwrite) {
    throw InvalidInput(
        "--overwrite: not with --resume, which continues what is in --out - leave one of them "
        "out");
  }
  if (run.shard && run.need_document()) {
    throw InvalidInput(std::string(run.json     ? "--json"
                                   : run.report ? "--report"
                                                : "--table") +
                       ": not with --shard - write it with the command that reads all shards");
  }
}

}  // namespace

KeptUnits::KeptUnits(const CommonArguments& run, const std::string& command, const Texts& results,
                     const Texts& parts, Session& session)
    : quiet_(run.quiet) {
  if (run.out) folder_.emplace(*run.out);
  // What --resume continues may replace earlier results.
  const bool continues = run.resume && run.out && !units_files_in(*run.out).empty();
  if (folder_) {
    folder_->require_place_for(results, run.overwrite || continues ? nullptr
                                        : run.resume ? "--overwrite instead of --resume"
                                                     : overwrite_only);
  }
  require_unit_options(run);
  if (!folder_) return;
  const Machine machine = session.machine();
  std::vector<std::string> all = parts;
  all.insert(all.end(), {command, machine.backend, machine.simd,
                         machine.backend == "cuda" ? machine.device : ""});
  UnitsPlan plan{.folder = *run.out,
                 .command = "headlab " + command,
                 .study = sha256_of_texts(all),
                 .resumes = run.resume};
  plan.problem = [](const std::string& problem) {
    std::cerr << "headlab: " << problem << "; the command continues\n";
  };
  if (run.checkpoint) plan.save_seconds = run.checkpoint->seconds;
  if (run.shard) {
    const ShardChoice choice = choose_shard(*run.shard, environment_variable);
    plan.shard = choice.shard;
    plan.shards = choice.shards;
    plan.is_shard = true;
    shard_ = "shard " + std::to_string(choice.shard) + " of " + std::to_string(choice.shards);
    if (!quiet_) std::cerr << "headlab: " << shard_ << " (" << choice.chosen_by << ")\n";
  }
  const std::string name = units_file_name(plan.shard, plan.shards);
  folder_->claim(".headlab-lock-" + name, "another task is writing " + name,
                 patience_of(run.resume));
  const std::vector<std::string> there =
      run.shard ? std::vector<std::string>{name} : units_files_in(*run.out);
  folder_->require_place_for({name}, nullptr);
  if (!run.resume && !run.overwrite) folder_->require_place_for(there, resume_or_overwrite);
  units_ = std::make_unique<Units>(std::move(plan));
  session.units = units_.get();
  if (run.overwrite) {
    std::error_code none;
    for (const std::string& file : there) std::filesystem::remove(folder_->file(file), none);
  }
  if (run.resume && !quiet_) {
    std::cerr << "headlab: found " << units_->found() << " results of parts in "
              << one_line(*run.out) << "\n";
  }
}

ExitCode KeptUnits::end_shard(const Outcome& outcome) {
  units_->save(outcome.complete, true);
  if (outcome.complete && !quiet_) std::cerr << "headlab: wrote " << units_->path() << "\n";
  if (!outcome.complete) {
    std::cerr << "headlab: " << (outcome.interrupted ? "interrupted: " : "--max-time reached: ")
              << "kept a part of " << shard_ << " in " << units_->path()
              << "; --resume continues\n";
  }
  return exit_code_of(outcome);
}

std::optional<ExitCode> KeptUnits::ended_before(const CommonArguments& run,
                                                const Texts& files) const {
  if (!units_ || !units_->exit_code() || is_shard() || run.need_document()) return {};
  std::error_code none;
  for (const std::string& file : files) {
    if (!std::filesystem::exists(folder_->file(file), none)) return {};
  }
  if (!quiet_) {
    std::cerr << "headlab: complete already: " << one_line(folder_->file(files.front())) << "\n";
  }
  return static_cast<ExitCode>(*units_->exit_code());
}

void KeptUnits::keep(const Outcome& outcome) {
  if (!units_) return;
  std::error_code none;
  // Where all is done a file of before will do: what it lacks is computed again.
  if (outcome.complete && std::filesystem::exists(units_->path(), none)) return;
  units_->save(false, true);
}

void KeptUnits::end(const Outcome& outcome, std::optional<ExitCode> code) {
  if (!units_) return;
  if (!outcome.complete) {
    units_->save(false);
    return;
  }
  if (code) {
    units_->finish(static_cast<int>(*code));
    return;
  }
  std::error_code none;
  std::filesystem::remove(units_->path(), none);
}

std::vector<std::string> fingerprints_of(const Scenario& scenario) {
  std::vector<std::string> all = {to_json(scenario_tree(scenario))};
  for (const Condition& condition : scenario.conditions) {
    all.push_back(plan_sha256(make_plan(without_preparation(condition))));
  }
  return all;
}

}  // namespace headlab::tools
