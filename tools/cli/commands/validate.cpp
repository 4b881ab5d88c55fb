// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/validate.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "tools/cli/characters.h"
#include "tools/cli/kept_units.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/supervise.h"
#include "tools/cli/verdict_table.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"
#include "tools/report/write_report.h"
#include "validation/claims/claim_scenarios.h"
#include "validation/verdicts/verdicts_json.h"

namespace headlab::tools {
namespace {

/// Certificates as scenario files of their own, so that each can be run again by one command.
void name_counterexamples(Validation& validation, const std::string& backend,
                          const OutputFolder& folder, std::vector<TextFile>& files) {
  for (VerdictRow& row : validation.rows) {
    // That of a user's own claim is in the user's own file.
    if (!row.counterexample || !row.counterexample->replay.empty()) continue;
    const std::string scenario = std::filesystem::path(row.scenario).stem().string();
    const std::string path =
        folder.file(scenario + (row.index.empty() ? "" : "_" + row.index) + ".toml");
    row.replay = "headlab run " + shell_word(path) + " --seed " +
                 std::to_string(row.counterexample->seed) + " --replicates " +
                 std::to_string(row.counterexample->replicates);
    if (backend != "auto") row.replay += " --backend " + backend;
    row.counterexample->replay = row.replay;
    // Forms that one scenario states share it.
    const auto same = [&](const TextFile& file) { return file.first == path; };
    if (std::ranges::none_of(files, same)) {
      files.emplace_back(path, row.counterexample->scenario);
    }
  }
}

/// The files in `folder` with names that name_counterexamples() gives.
std::vector<std::string> counterexamples_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() != ".toml") continue;
    const std::string stem = at->path().stem().string();
    for (const ClaimScenario& claim : claim_scenarios()) {
      const std::string name = std::filesystem::path(claim.file).stem().string();
      if (stem == name || stem.starts_with(name + "_")) {
        names.push_back(at->path().filename().string());
        break;
      }
    }
  }
  return names;
}

/// What the verdicts depend on.
std::vector<std::string> parts_of(const ValidateArguments& arguments, const Session& session) {
  std::vector<std::string> parts = {arguments.level, arguments.run.seed.value_or(""),
                                    arguments.run.replicates.value_or("")};
  for (const std::string& claim : arguments.claims) {
    parts.push_back(claim);
    if (!arguments.run.out || !names_scenario(claim)) continue;
    for (std::string& sum :
         fingerprints_of(read_scenario(claim, {}, {.stop = session.stop_hook()}))) {
      parts.push_back(std::move(sum));
    }
  }
  return parts;
}

}  // namespace

ExitCode command_validate(const ValidateArguments& arguments) {
  Session session = session_of(arguments.run);
  ValidateOptions options{.full = is_full(arguments.level)};
  if (arguments.run.seed) options.seed = parse_seed(*arguments.run.seed);
  if (arguments.run.replicates) options.replicates = parse_replicates(*arguments.run.replicates);
  if (options.full && options.replicates) {
    throw InvalidInput(
        "--replicates: not with --level full, which says how many - leave one of them out");
  }
  for (const std::string& name : arguments.claims) {
    if (!names_scenario(name)) find_claim(name);
  }
  require_out(arguments.run.overwrite, arguments.run.out);
  std::optional<OutputFolder> folder;
  if (arguments.run.out) folder.emplace(*arguments.run.out);
  if (folder && !arguments.run.overwrite && !continues_units(arguments.run)) {
    folder->require_none_of({"verdicts.json", "report.md"}, overwrite_only);
    folder->require_none_of(counterexamples_in(*arguments.run.out), overwrite_only);
  }
  const std::optional<std::string>& json = arguments.run.json;
  if (json && *json != "-") require_writable("--json", *json);
  const std::optional<std::string>& report = arguments.run.report;
  if (report) require_report_writable("--report", *report);

  KeptUnits kept(arguments.run, folder ? &*folder : nullptr, "validate",
                 parts_of(arguments, session), session);

  const auto ended =
      kept.ended_before(arguments.run, folder ? &*folder : nullptr, {"verdicts.json", "report.md"});
  if (ended) return *ended;
  Validation validation = supervise(session, arguments.run, show_count, [&](ProgressDisplay&) {
    return validate(arguments.claims, session, options);
  });

  if (kept.is_shard()) return kept.end_shard(validation.outcome);

  std::vector<TextFile> files;
  if (folder) name_counterexamples(validation, arguments.run.backend, *folder, files);
  const std::string verdicts = verdicts_json(validation, provenance());
  if (folder) {
    files.emplace_back(folder->file("verdicts.json"), verdicts);
    files.emplace_back(folder->file("report.md"), verdict_report(validation));
  }
  if (json && *json != "-") files.emplace_back(*json, verdicts);
  if (report) files.emplace_back(*report, report_page({source_of_document(verdicts)}));
  // Files first: they are there whatever reads the output.
  write_files(files, arguments.run.quiet);
  kept.end(validation.outcome, exit_code_of(validation));
  std::cout << (json == "-" ? verdicts : shown(verdict_table(validation)));
  finish_standard_output();
  say_ending(validation.outcome, "verdicts not reached are unresolved");
  return exit_code_of(validation);
}

}  // namespace headlab::tools
