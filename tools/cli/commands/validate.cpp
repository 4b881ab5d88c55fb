// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/validate.h"

#include <filesystem>
#include <set>

#include "engine/files/folder.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/kept_units.h"
#include "tools/cli/shipped_scenarios.h"
#include "tools/cli/verdict_table.h"
#include "validation/claims/stated_claim.h"
#include "validation/verdicts/calibration.h"

namespace headlab::tools {
namespace {

struct ValidateArguments : CommonArguments {
  Texts claims;
  bool full = false;
  bool calibrate = false;

  void list(Options& options) {
    options.texts("CLAIM", "",
                  "Claims to test, by name or as a scenario file that states them; all by default",
                  claims);
    // Reading all claims takes as long as all else that a short command does.
    options.offer([] {
      Texts names;
      for (const Claim& claim : headlab::claims()) names.push_back(claim.name);
      return names;
    });
    options.choice("--level", "LEVEL", "quick (the default) or full: 100 times the replicates",
                   full, {{"quick", false}, {"full", true}});
    options.flag("--calibrate", "Measure how often verdicts are wrong", calibrate);
    take(options, {{"--out", "Write verdicts.json and report.md here"},
                   "--overwrite",
                   {"--json", "Write the verdicts to a file, or - for standard output"},
                   "--report",
                   "--table"});
    take(options, units);
    take(options, simulation);
  }
};

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
  for (const std::string& file : names_in(folder)) {
    if (!file.ends_with(".toml")) continue;
    const std::string stem = std::filesystem::path(file).stem().string();
    for (const ClaimScenario& claim : claim_scenarios()) {
      const std::string name = std::filesystem::path(claim.file).stem().string();
      if (stem == name || stem.starts_with(name + "_")) {
        names.push_back(file);
        break;
      }
    }
  }
  return names;
}

/// What the verdicts depend on.
std::vector<std::string> parts_of(const ValidateArguments& arguments, const Session& session) {
  const auto text = [](const std::optional<std::uint64_t>& number) {
    return number ? std::to_string(*number) : "";
  };
  Texts parts = {arguments.full ? "full" : "quick", text(arguments.seed),
                 text(arguments.replicates)};
  for (const std::string& claim : arguments.claims) {
    parts.push_back(claim);
    if (!arguments.out || !names_scenario(claim)) continue;
    for (std::string& sum :
         fingerprints_of(read_scenario(claim, {}, {.stop = session.stop_hook()}))) {
      parts.push_back(std::move(sum));
    }
  }
  return parts;
}

/// `headlab validate --calibrate`: measures how often verdicts are wrong.
ExitCode calibrate_verdicts(const ValidateArguments& arguments) {
  if (!arguments.claims.empty()) {
    throw InvalidInput("--calibrate: takes no claim, its studies are fixed - leave out \"" +
                       one_line(arguments.claims.front()) + "\"");
  }
  if (arguments.replicates) {
    throw InvalidInput(
        "--replicates: not with --calibrate, whose studies have their own - use --level");
  }
  if (arguments.report || arguments.table) {
    throw InvalidInput(std::string(arguments.report ? "--report" : "--table") +
                       ": is for verdicts, not with --calibrate - use --out");
  }
  Session session = session_of(arguments);
  // It suits runs as small as these.
  if (arguments.backend == "auto") session.backend = "cpu";
  CalibrateOptions options{.full = arguments.full};
  options.seed = arguments.seed.value_or(options.seed);
  require_out(arguments.overwrite, arguments.out);
  const Texts results = {"calibration.json", "calibration.md"};
  KeptUnits kept(arguments, "validate --calibrate", results,
                 {arguments.full ? "full" : "quick", std::to_string(options.seed)}, session);
  if (const auto ended = kept.ended_before(arguments, results)) return *ended;
  require_documents(arguments);

  const Calibration calibration = supervise(session, arguments, show_count, [&](ProgressDisplay&) {
    return calibrate(calibration_studies(session), session, options);
  });

  if (kept.is_shard()) return kept.end_shard(calibration.outcome);

  kept.keep(calibration.outcome);
  const std::string rates = calibration_json(calibration, provenance());
  std::vector<TextFile> files;
  if (const OutputFolder* folder = kept.folder()) {
    files.emplace_back(folder->file("calibration.json"), rates);
    files.emplace_back(folder->file("calibration.md"), calibration_report(calibration));
  }
  write_documents(arguments, rates, std::move(files));
  kept.end(calibration.outcome, exit_code_of(calibration));
  print_document(arguments, rates, [&] { return calibration_table(calibration); });
  say_ending(calibration.outcome, "rates are of the runs that were done");
  return exit_code_of(calibration);
}

/// Rejects what is neither a claim nor the file of a scenario.
void require_claim(const std::string& name) {
  if (names_scenario(name)) {
    std::error_code none;
    if (std::filesystem::exists(name, none)) return;
    throw InvalidInput(one_line(name) + ": is not there" + advice_on_missing_scenario(name));
  }
  try {
    find_claim(name);
  } catch (const InvalidInput& error) {
    const std::string line = error.what();
    throw InvalidInput(line + (line.ends_with('?') ? "" : advice_on_missing_scenario(name)));
  }
}

ExitCode validate_claims(const ValidateArguments& arguments) {
  if (arguments.calibrate) return calibrate_verdicts(arguments);
  Session session = session_of(arguments);
  if (arguments.full && arguments.replicates) {
    throw InvalidInput(
        "--replicates: not with --level full, which says how many - leave one of them out");
  }
  std::set<std::filesystem::path> claims;
  for (const std::string& name : arguments.claims) {
    require_claim(name);
    // It would count twice among the comparisons of the call.
    std::error_code none;
    const bool is_file = names_scenario(name);
    const std::filesystem::path claim =
        is_file ? std::filesystem::weakly_canonical(name, none) : std::filesystem::path(name);
    if (!claims.insert(claim).second) {
      throw InvalidInput(one_line(name) + ": is given twice - leave one of them out");
    }
  }
  require_out(arguments.overwrite, arguments.out);
  require_documents(arguments);
  const Texts results = {"verdicts.json", "report.md"};
  Texts earlier = results;
  if (arguments.out) {
    for (std::string& name : counterexamples_in(*arguments.out)) earlier.push_back(std::move(name));
  }
  KeptUnits kept(arguments, "validate", earlier, parts_of(arguments, session), session);
  if (const auto ended = kept.ended_before(arguments, results)) return *ended;
  const ValidateOptions options{
      .full = arguments.full, .seed = arguments.seed, .replicates = arguments.replicates};
  Validation validation = supervise(session, arguments, show_count, [&](ProgressDisplay&) {
    return validate(arguments.claims, session, options);
  });

  if (kept.is_shard()) return kept.end_shard(validation.outcome);

  kept.keep(validation.outcome);
  std::vector<TextFile> files;
  const OutputFolder* const folder = kept.folder();
  if (folder) name_counterexamples(validation, arguments.backend, *folder, files);
  const std::string verdicts = verdicts_json(validation, provenance());
  if (folder) {
    files.emplace_back(folder->file("verdicts.json"), verdicts);
    files.emplace_back(folder->file("report.md"), verdict_report(validation));
  }
  write_documents(arguments, verdicts, std::move(files));
  kept.end(validation.outcome, exit_code_of(validation));
  print_document(arguments, verdicts, [&] { return verdict_table(validation); });
  say_ending(validation.outcome, "verdicts not reached are unresolved");
  return exit_code_of(validation);
}

}  // namespace

Command validate_command() {
  return make_command("validate", "Test claims of the theory by simulation", validate_claims);
}

}  // namespace headlab::tools
