// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/command_line.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/files/architectures.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "engine/scenario/law_reader.h"
#include "tools/cli/characters.h"
#include "tools/cli/commands/allocate.h"
#include "tools/cli/commands/calibrate.h"
#include "tools/cli/commands/completion.h"
#include "tools/cli/commands/compress.h"
#include "tools/cli/commands/dataset.h"
#include "tools/cli/commands/diff.h"
#include "tools/cli/commands/doctor.h"
#include "tools/cli/commands/hdi.h"
#include "tools/cli/commands/import_heads.h"
#include "tools/cli/commands/init.h"
#include "tools/cli/commands/list.h"
#include "tools/cli/commands/replay.h"
#include "tools/cli/commands/report.h"
#include "tools/cli/commands/run.h"
#include "tools/cli/commands/shards.h"
#include "tools/cli/commands/theory.h"
#include "tools/cli/commands/validate.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/figures_help.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/stop_signal.h"
#include "tools/cli/supervise.h"
#include "tools/cli/text_width.h"

namespace headlab::tools {
namespace {

constexpr const char* about = "Monte Carlo engine for multi-head Nadaraya-Watson regression";

/// What was read from the command line.
struct Arguments {
  RunArguments run;
  TheoryArguments theory;
  ValidateArguments validate;
  AllocateArguments allocate;
  DatasetArguments dataset;
  ReplayArguments replay;
  DiffArguments diff;
  ReportArguments report;
  HdiArguments hdi;
  ImportHeadsArguments import_heads;
  CompressArguments compress;
  MergeArguments merge;
  std::string status;
  std::string init = "scenario.toml";
  std::string list;
  std::string help;
  std::string completion;
};

/// What everything that simulates takes.
void add_simulation(CLI::App& command, RunArguments& run) {
  command.add_option("--backend", run.backend, "auto (the default), reference, cpu or cuda")
      ->type_name("NAME");
  command
      .add_option("--simd", run.simd,
                  "avx512, avx2 or portable, of the backend cpu; the default is the fastest. "
                  "Results differ in their last bits")
      ->type_name("TARGET");
  command.add_option("--threads", run.threads, "Threads to use; the default is all")
      ->type_name("N");
  command.add_option("--seed", run.seed, "Seed of the simulation, instead of the scenario's")
      ->type_name("S");
  command.add_option("--replicates", run.replicates, "Training sets, instead of the scenario's")
      ->type_name("R");
  command.add_option("--max-time", run.max_time, "Stop after this time: 45s, 30m, 2h or seconds")
      ->type_name("TIME");
  command.add_flag("--quiet", run.quiet, "No progress on standard error")->disable_flag_override();
}

void add_overwrite(CLI::App& command, bool& overwrite) {
  command.add_flag("--overwrite", overwrite, "Replace earlier results in --out")
      ->disable_flag_override();
}

/// What a command of independent parts takes.
void add_units(CLI::App& command, RunArguments& run) {
  command
      .add_option(
          "--shard", run.shard,
          "Compute one share of N alone, I from 1 to N, into --out; the command without it, "
          "and with --resume, reads all shards; auto: as Slurm or MPI number it")
      ->type_name("I/N|auto[/N]");
  command
      .add_flag("--resume", run.resume, "Use what is kept in --out, of this command or its shards")
      ->disable_flag_override();
  command
      .add_option("--checkpoint", run.checkpoint,
                  "Keep what is done in --out every TIME; the default is 1m")
      ->type_name("TIME");
}

void add_report_file(CLI::App& command, std::optional<std::string>& report) {
  command
      .add_option("--report", report,
                  "Write the results as one HTML file with pictures, which needs no network")
      ->type_name("FILE");
}

void add_run(CLI::App& app, RunArguments& run) {
  CLI::App* command = app.add_subcommand("run", "Simulate a scenario");
  command->add_option("SCENARIO.toml", run.scenario, "The scenario file, or - for standard input")
      ->type_name("");
  command->add_option("--set", run.sets, "Change a parameter of the scenario; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--out", run.out, "Write results.nc and summary.json here")->type_name("DIR");
  command->add_option("--json", run.json, "Write the summary to a file, or - for standard output")
      ->type_name("FILE|-");
  add_report_file(*command, run.report);
  command
      ->add_flag("--resume", run.resume,
                 "Resume the run whose results are in --out; --replicates may be more")
      ->disable_flag_override();
  add_overwrite(*command, run.overwrite);
  command
      ->add_option("--checkpoint", run.checkpoint,
                   "Write the results so far to --out every TIME; the default is 1m")
      ->type_name("TIME");
  command
      ->add_option("--nodes", run.nodes,
                   "all, or none: --out keeps figures alone, for large sweeps; no --resume later")
      ->type_name("WORD");
  command->add_flag("--compare", run.compare, "Compare the simulation with closed forms, with z")
      ->disable_flag_override();
  command
      ->add_option("--until", run.until,
                   "Stop once standard errors are this small: mse=1%, output_correlation=0.005, "
                   "mse@#3=1% for condition #3; --replicates is then the most")
      ->type_name("FIGURE=MCSE,...");
  command
      ->add_option("--against", run.against,
                   "Subtract a condition from the others: #3, from 0, or a swept KEY=VALUE")
      ->type_name("CONDITION");
  command
      ->add_option("--difference", run.difference,
                   "Subtract the condition with the first value of a swept key")
      ->type_name("KEY");
  command
      ->add_option("--shard", run.shard,
                   "Simulate one share of N alone, I from 1 to N, for headlab merge; auto: as "
                   "Slurm or MPI number it")
      ->type_name("I/N|auto[/N]");
  command
      ->add_flag("--dry-run", run.dry_run,
                 "Print the scenario with all defaults and what the run takes; write nothing")
      ->disable_flag_override();
  add_simulation(*command, run);
}

void add_merge(CLI::App& app, MergeArguments& merge) {
  CLI::App* command = app.add_subcommand("merge", "Join the shards of headlab run --shard");
  command->add_option("DIR", merge.folders, "Folders with all shards of a scenario")->type_name("");
  command->add_option("--out", merge.run.out, "Write results.nc and summary.json here")
      ->type_name("DIR");
  add_overwrite(*command, merge.run.overwrite);
  command
      ->add_flag("--allow-missing", merge.allow_missing,
                 "Take what is there where shards are missing or not complete; no --resume later")
      ->disable_flag_override();
  command->add_option("--threads", merge.run.threads, "Threads to use; the default is all")
      ->type_name("N");
  command->add_flag("--quiet", merge.run.quiet, "No progress on standard error")
      ->disable_flag_override();
}

void add_theory(CLI::App& app, TheoryArguments& theory) {
  CLI::App* command = app.add_subcommand("theory", "Compute a scenario from closed forms alone");
  command
      ->add_option("SCENARIO.toml", theory.scenario, "The scenario file, or - for standard input")
      ->type_name("");
  command->add_option("--set", theory.sets, "Change a parameter of the scenario; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--source", theory.source,
                   "exact, first_order or auto (the default): exact where it applies")
      ->type_name("FORM");
  command
      ->add_option("--json", theory.json, "Write the figures to a file, or - for standard output")
      ->type_name("FILE|-");
  command->add_option("--threads", theory.threads, "Threads to use; the default is all")
      ->type_name("N");
}

void add_validate(CLI::App& app, ValidateArguments& validate) {
  CLI::App* command = app.add_subcommand("validate", "Test claims of the theory by simulation");
  command
      ->add_option("CLAIM", validate.claims,
                   "Claims to test, by name or as a scenario file that states them; all by default")
      ->type_name("");
  command
      ->add_option("--level", validate.level,
                   "quick (the default) or full: 100 times the replicates")
      ->type_name("LEVEL");
  command->add_flag("--calibrate", validate.calibrate, "Measure how often verdicts are wrong")
      ->disable_flag_override();
  command->add_option("--out", validate.run.out, "Write verdicts.json and report.md here")
      ->type_name("DIR");
  add_overwrite(*command, validate.run.overwrite);
  command
      ->add_option("--json", validate.run.json,
                   "Write the verdicts to a file, or - for standard output")
      ->type_name("FILE|-");
  add_report_file(*command, validate.run.report);
  add_units(*command, validate.run);
  add_simulation(*command, validate.run);
}

void add_allocate(CLI::App& app, AllocateArguments& allocate) {
  CLI::App* command =
      app.add_subcommand("allocate", "Advise how many heads of what dimension to use");
  command
      ->add_option(
          "--data", allocate.run.scenario,
          "The scenario that says what is to be learned, and by which kernel; - is standard input")
      ->type_name("SCENARIO.toml");
  command
      ->add_option("--budget", allocate.budget,
                   "Dimensions of all heads together, H d_k <= D; or several: 8,16,32")
      ->type_name("D");
  command
      ->add_option("--dims", allocate.dims,
                   "Dimensions of a head to choose from: 16,32,64; the default is all")
      ->type_name("K");
  command
      ->add_option("--n", allocate.n,
                   "Training points, instead of the scenario's; or several: 100,1000")
      ->type_name("N");
  command
      ->add_option("--bandwidth-rule", allocate.rule,
                   "fixed (the default: the scenario's), sqrt_dim, rate or tuned; of a map several")
      ->type_name("RULE");
  command
      ->add_flag(
          "--growth", allocate.growth,
          "Say how the best dimension grows with n, or the best H with D: four n or more, or "
          "three budgets")
      ->disable_flag_override();
  command
      ->add_flag("--map", allocate.map,
                 "Say so for every setting of the scenario's sweep, rule and budget")
      ->disable_flag_override();
  command
      ->add_option("--out", allocate.run.out,
                   "Folder for the map, map.nc and map.json; made if it is not there")
      ->type_name("DIR");
  add_overwrite(*command, allocate.run.overwrite);
  command
      ->add_option(
          "--source", allocate.source,
          "simulation (the default), exact: the same without Monte Carlo error, or theory: "
          "the mean over queries and truths, n up to 1e12")
      ->type_name("SOURCE");
  command
      ->add_option("--set", allocate.run.sets,
                   "Change a parameter of the scenario; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--json", allocate.run.json,
                   "Write the advice to a file, or - for standard output")
      ->type_name("FILE|-");
  add_report_file(*command, allocate.run.report);
  add_units(*command, allocate.run);
  add_simulation(*command, allocate.run);
  command->get_option("--replicates")
      ->description("Most training sets of an allocation; the default is 65536");
}

void add_replay(CLI::App& app, ReplayArguments& replay) {
  CLI::App* command = app.add_subcommand("replay", "Show one replicate of a scenario in full");
  command
      ->add_option("SCENARIO.toml", replay.run.scenario,
                   "The scenario file, or - for standard input")
      ->type_name("");
  command
      ->add_option("--set", replay.run.sets, "Change a parameter of the scenario; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--replicate", replay.replicate, "The replicate, counted from 0")
      ->type_name("R");
  command
      ->add_option("--condition", replay.condition,
                   "The condition of a sweep, counted from 0 in the order of the table")
      ->type_name("C");
  command->add_option("--out", replay.run.out, "Write replay.nc here")->type_name("DIR");
  add_overwrite(*command, replay.run.overwrite);
  add_simulation(*command, replay.run);
}

void add_dataset(CLI::App& app, DatasetArguments& dataset) {
  CLI::App* command = app.add_subcommand("dataset", "Write the training sets of a scenario");
  command
      ->add_option("SCENARIO.toml", dataset.run.scenario,
                   "The scenario file, or - for standard input")
      ->type_name("");
  command
      ->add_option("--set", dataset.run.sets, "Change a parameter of the scenario; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--replicates", dataset.run.replicates, "Training sets of each condition")
      ->type_name("R");
  command->add_option("--out", dataset.run.out, "Write manifest.json and the shards here")
      ->type_name("DIR");
  add_overwrite(*command, dataset.run.overwrite);
  command
      ->add_option("--shards", dataset.shards,
                   "Shards of each condition; by default each has at most 256 MiB")
      ->type_name("S");
  command
      ->add_option("--only-shard", dataset.only_shard,
                   "Write this shard alone, from 0 to S - 1 (those of run --shard count from 1)")
      ->type_name("I");
  command->add_option("--format", dataset.format, "netcdf (the default) or npy")->type_name("NAME");
  command->add_flag("--estimates", dataset.estimates, "Write the heads' estimates too")
      ->disable_flag_override();
  command->add_flag("--weights", dataset.weights, "Write the attention weights too")
      ->disable_flag_override();
  command->add_option("--threads", dataset.run.threads, "Threads to use; the default is all")
      ->type_name("N");
  command->add_option("--seed", dataset.run.seed, "Seed of the draws, instead of the scenario's")
      ->type_name("S");
  command->add_flag("--quiet", dataset.run.quiet, "No progress on standard error")
      ->disable_flag_override();
}

void add_diff(CLI::App& app, DiffArguments& diff) {
  CLI::App* command = app.add_subcommand("diff", "Compare two results of headlab run");
  command->add_option("A", diff.a, "Folder of --out, or its results.nc or summary.json")
      ->type_name("");
  command->add_option("B", diff.b, "Another one")->type_name("");
  command
      ->add_option("--json", diff.json, "Write the differences to a file, or - for standard output")
      ->type_name("FILE|-");
}

void add_hdi(CLI::App& app, HdiArguments& hdi) {
  CLI::App* command = app.add_subcommand("hdi", "Compare the heads of a file with random ones");
  command->add_option("FILE", hdi.file, "Heads: NPY of H x d x k, or NetCDF of import-heads")
      ->type_name("");
  command->add_option("--json", hdi.json, "Write the figures to a file, or - for standard output")
      ->type_name("FILE|-");
  add_report_file(*command, hdi.report);
  command
      ->add_option("--kv-heads", hdi.kv_heads,
                   "Groups of heads that share keys, of a file that does not say")
      ->type_name("G");
  command->add_option("--seed", hdi.seed, "Seed of the random heads; the default is 0")
      ->type_name("S");
  command->add_option("--top", hdi.top, "Pairs of most alike heads to name; the default is 5")
      ->type_name("N");
  command->add_option("--threads", hdi.threads, "Threads to use; the default is all")
      ->type_name("N");
}

void add_import_heads(CLI::App& app, ImportHeadsArguments& import) {
  CLI::App* command =
      app.add_subcommand("import-heads", "Take the heads of a trained model from its checkpoint");
  command
      ->add_option("CHECKPOINT", import.checkpoint,
                   "FILE.safetensors, FILE.safetensors.index.json, or the folder of either")
      ->type_name("");
  command
      ->add_option(
          "--arch", import.architecture,
          "auto (the default): by model_type of config.json; or " + listed(architecture_names()))
      ->type_name("ARCH");
  command->add_option("--layer", import.layer, "One layer, from 0; the default is all")
      ->type_name("L|all");
  command
      ->add_option("--config", import.config,
                   "config.json of the model; by default the one in the folder of CHECKPOINT")
      ->type_name("FILE");
  command->add_option("--heads", import.heads, "Heads of a layer, instead of --config")
      ->type_name("H");
  command
      ->add_option("--kv-heads", import.kv_heads,
                   "Heads with keys of their own, where others share them")
      ->type_name("G");
  command->add_option("--out", import.out, "heads.nc, or heads.npy for one layer")
      ->type_name("FILE");
  add_overwrite(*command, import.overwrite);
  command->add_option("--threads", import.threads, "Threads to use; the default is all")
      ->type_name("N");
}

void add_compress(CLI::App& app, CompressArguments& compress) {
  CLI::App* command =
      app.add_subcommand("compress", "Say what low-rank approximations of heads lose");
  command->add_option("FILE", compress.file, "Heads with their matrices: NetCDF of import-heads")
      ->type_name("");
  command->add_option("--rank", compress.rank, "Rank of the compressed heads")->type_name("R");
  command
      ->add_option("--by", compress.by,
                   "What --out is compressed by: kq_svd (the default), k_svd or joint")
      ->type_name("METHOD");
  command
      ->add_option("--data", compress.data,
                   "Inputs of the heads, CSV or NPY with a row each; the default is N(0, I)")
      ->type_name("FILE");
  command->add_flag("--centre", compress.centre, "Fit to the covariance of the keys")
      ->disable_flag_override();
  command->add_option("--layer", compress.layer, "One layer, from 0; the default is all")
      ->type_name("L|all");
  command->add_option("--n", compress.n, "Keys that a query weighs; the default is 128")
      ->type_name("N");
  command
      ->add_option("--replicates", compress.replicates,
                   "Sets of keys, each with 16 queries; the default is 256")
      ->type_name("R");
  command->add_option("--seed", compress.seed, "Seed of keys and queries; the default is 0")
      ->type_name("S");
  command->add_option("--out", compress.out, "Write the compressed heads: .nc, or .npy of a layer")
      ->type_name("FILE");
  add_overwrite(*command, compress.overwrite);
  command
      ->add_option("--json", compress.json, "Write the figures to a file, or - for standard output")
      ->type_name("FILE|-");
  command->add_option("--threads", compress.threads, "Threads to use; the default is all")
      ->type_name("N");
}

void add_report(CLI::App& app, ReportArguments& report) {
  CLI::App* command = app.add_subcommand(
      "report", "Write results as one HTML file with pictures, which needs no network");
  command
      ->add_option("DIR", report.folders,
                   "Folders of --out, or files of --json: of run, theory, validate, allocate, hdi")
      ->type_name("");
  command->add_option("--out", report.out, "The file; the default is report.html")
      ->type_name("FILE");
}

std::string exit_codes_text() {
  std::string text = "Exit codes:\n";
  for (const ExitCodeMeaning& one : exit_code_meanings()) {
    text += "  " + left(one.code, 9) + one.meaning + "\n";
  }
  return text;
}

void add_commands(CLI::App& app, Arguments& arguments) {
  app.set_version_flag("--version", [] {
    const Provenance program = provenance();
    return "headlab " + program.version + " (git " + program.git + ")";
  });
  app.footer(exit_codes_text() +
             "\nTry: headlab list scenarios, headlab help run, headlab help figures");
  add_run(app, arguments.run);
  add_theory(app, arguments.theory);
  add_validate(app, arguments.validate);
  add_allocate(app, arguments.allocate);
  add_dataset(app, arguments.dataset);
  add_replay(app, arguments.replay);
  add_diff(app, arguments.diff);
  add_report(app, arguments.report);
  add_merge(app, arguments.merge);
  app.add_subcommand("status", "Show the shards in a folder and the time they still take")
      ->add_option("DIR", arguments.status, "The folder of --out")
      ->type_name("");
  add_hdi(app, arguments.hdi);
  add_import_heads(app, arguments.import_heads);
  add_compress(app, arguments.compress);
  app.add_subcommand("init", "Write a commented scenario to begin with")
      ->add_option("FILE|-", arguments.init,
                   "The new file, or - for standard output; the default is scenario.toml")
      ->type_name("");
  app.add_subcommand(
         "list", "Show laws, claims, architectures of models, and the scenarios that come along")
      ->add_option("laws|claims|architectures|scenarios", arguments.list,
                   "Which of them; all by default")
      ->type_name("");
  app.add_subcommand("doctor", "Show what this build and machine are, and test them");
  app.add_subcommand("help", "Explain a command, or the figures of the tables")
      ->add_option("COMMAND|figures", arguments.help, "What to explain")
      ->type_name("");
  CLI::App* completion = app.add_subcommand("completion", "Print a shell's completion of headlab");
  completion->add_option("bash|zsh", arguments.completion, "The shell")->type_name("");
  completion->group("");  // for shells and installers: help does not list it
  // Leftovers are reported in headlab's own words.
  app.require_subcommand(0, 1);
  app.allow_extras();
  for (CLI::App* command : app.get_subcommands({})) command->allow_extras();
}

/// The commands that help lists.
std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

/// The long options of a command.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Whether a command of the program has this option.
bool belongs_to_a_command(const CLI::App& app, const std::string& option) {
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
    const std::vector<std::string> names = options_of(*command);
    return std::find(names.begin(), names.end(), option) != names.end();
  });
}

/// What to write instead of a word that a command has no use for.
std::string advice_on_word(const CLI::App& command, const std::string& name,
                           const std::string& word) {
  const std::vector<std::string> options = options_of(command);
  const auto has = [&](const char* option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  if (has("--set") && word.find('=') != std::string::npos) {
    return "write each setting as --set 'KEY=VALUE', in quotes and without spaces around =";
  }
  if (has("--data") && word.ends_with(".toml")) return "write --data " + one_line(word);
  return "try headlab help" + (name.empty() || name == "help" ? "" : " " + name);
}

/// Refuses the first argument that `command` has no use for. `plain` are those after "--".
void reject_leftovers(const CLI::App& command, const std::string& name,
                      const std::vector<std::string>& plain) {
  std::vector<std::string> rest = command.remaining();
  std::erase(rest, "--");
  if (rest.empty()) return;
  const auto option = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
    return word.find_first_not_of('-') > 0 && word.find_first_not_of('-') != std::string::npos;
  });
  const std::string prefix = name.empty() ? "" : name + ": ";
  if (option == rest.end()) {
    throw InvalidInput(prefix + "unexpected argument \"" + one_line(rest.front()) + "\" - " +
                       advice_on_word(command, name, rest.front()));
  }
  const std::string word = option->substr(0, option->find('='));
  if (std::find(plain.begin(), plain.end(), *option) != plain.end()) {
    throw InvalidInput(prefix + one_line(word) +
                       " stands after --, where nothing is an option - write it before --");
  }
  // Compared without their dashes, which would make all options look alike.
  const std::vector<std::string> names = options_of(command);
  std::vector<std::string> bare;
  for (const std::string& known : names) bare.push_back(known.substr(2));
  const std::string best = closest(word.substr(word.find_first_not_of('-')), bare);
  std::string advice = best.empty() ? "" : " - did you mean --" + best + "?";
  if (best.empty() && name.empty() && belongs_to_a_command(command, word)) {
    advice = " - options of a command stand after it: headlab run " + one_line(word);
  }
  throw InvalidInput(prefix + "unknown option " + one_line(word) + " (allowed: " + listed(names) +
                     ")" + advice);
}

/// Headlab's words for what the parser refused: CLI11 puts the name of the option first.
[[noreturn]] void reject_parse(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  std::string option = text.substr(0, text.find_first_of(": "));
  if (option[0] != '-') option = "--" + option;
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string prefix = chosen.empty() ? "" : chosen.front()->get_name() + ": ";
  if (text.find("At Most") != std::string::npos) {
    throw InvalidInput(prefix + option + " is given more than once");
  }
  if (text.find("missing") != std::string::npos) {
    throw InvalidInput(prefix + option + " needs a value");
  }
  if (text.find("flag override") != std::string::npos) {
    throw InvalidInput(prefix + option + " takes no value");
  }
  throw InvalidInput(prefix + one_line(text));
}

ExitCode command_help(const std::string& topic) {
  // A parser that has parsed nothing describes all commands alike.
  CLI::App app(about, "headlab");
  Arguments unused;
  add_commands(app, unused);
  std::vector<std::string> names = commands_of(app);
  if (topic.empty()) {
    std::cout << wrapped_columns(app.help(), output_width());
  } else if (topic == "completion" || std::find(names.begin(), names.end(), topic) != names.end()) {
    std::cout << wrapped_columns(app.get_subcommand(topic)->help("headlab"), output_width());
  } else if (topic == "figures") {
    std::cout << shown(figures_help(output_width()));
  } else {
    names.push_back("figures");
    const bool listed_by_list =
        std::find(list_words().begin(), list_words().end(), topic) != list_words().end();
    throw InvalidInput("help: unknown command \"" + one_line(topic) + "\"" +
                       suggestion(topic, names) +
                       (listed_by_list ? " - try headlab list " + topic : ""));
  }
  finish_standard_output();
  return ExitCode::done;
}

ExitCode run_command(CLI::App& app, const Arguments& arguments,
                     const std::vector<std::string>& plain) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::vector<std::string> names = commands_of(app);
  if (chosen.empty()) {
    std::vector<std::string> rest = app.remaining();
    if (rest.empty()) {
      throw InvalidInput("no command given (allowed: " + listed(names) + ") - try headlab help");
    }
    if (rest.front()[0] == '-') reject_leftovers(app, "", plain);
    const std::vector<std::string> options = options_of(app);
    const bool is_option =
        std::find(options.begin(), options.end(), "--" + rest.front()) != options.end();
    throw InvalidInput("unknown command \"" + one_line(rest.front()) + "\"" +
                       suggestion(rest.front(), names) +
                       (is_option ? " - did you mean --" + rest.front() + "?" : ""));
  }
  const CLI::App& command = *chosen.front();
  const std::string& name = command.get_name();
  reject_leftovers(app, plain.empty() ? "" : name, plain);
  reject_leftovers(command, name, plain);
  if (name == "run") return command_run(arguments.run);
  if (name == "theory") return command_theory(arguments.theory);
  if (name == "validate") {
    return arguments.validate.calibrate ? command_calibrate(arguments.validate)
                                        : command_validate(arguments.validate);
  }
  if (name == "allocate") return command_allocate(arguments.allocate);
  if (name == "dataset") return command_dataset(arguments.dataset);
  if (name == "replay") return command_replay(arguments.replay);
  if (name == "diff") return command_diff(arguments.diff);
  if (name == "merge") return command_merge(arguments.merge);
  if (name == "status") return command_status(arguments.status);
  if (name == "report") return command_report(arguments.report);
  if (name == "hdi") return command_hdi(arguments.hdi);
  if (name == "import-heads") return command_import_heads(arguments.import_heads);
  if (name == "compress") return command_compress(arguments.compress);
  if (name == "init") return command_init(arguments.init);
  if (name == "list") return command_list(arguments.list);
  if (name == "doctor") return command_doctor();
  if (name == "completion") return command_completion(app, arguments.completion);
  return command_help(arguments.help);
}

ExitCode parse_and_run(int argc, const char* const* argv) {
  CLI::App app(about, "headlab");
  Arguments arguments;
  add_commands(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for help, or for the version
    std::ostringstream text;
    app.exit(asked, text, text);
    std::cout << wrapped_columns(text.str(), output_width());
    finish_standard_output();
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    reject_parse(app, error);
  }
  const auto dashes = std::find(argv, argv + argc, std::string("--"));
  return run_command(app, arguments, {std::min(dashes + 1, argv + argc), argv + argc});
}

}  // namespace

const char* unit_of_work(int argc, const char* const* argv) {
  if (argc < 2) return nullptr;
  const std::string command = argv[1];
  const bool by_theory = std::any_of(argv + 2, argv + argc, [](const std::string& word) {
    return word == "theory" || word == "exact" || word == "--source=theory" ||
           word == "--source=exact";
  });
  if (command == "allocate" && by_theory) return "this allocation";
  if (command == "run" || command == "validate" || command == "allocate" || command == "dataset" ||
      command == "replay") {
    return "this training set";
  }
  if (command == "theory") return "this condition";
  if (command == "hdi" || command == "import-heads") return "these heads";
  if (command == "compress") return "this set of keys";
  return nullptr;
}

int command_line(int argc, const char* const* argv) {
  use_characters_of_locale();
  try {
    return static_cast<int>(parse_and_run(argc, argv));
  } catch (const Stopped&) {
    return static_cast<int>(
        ended({.complete = false, .interrupted = stop_on_signals()->load()}, "kept nothing"));
  } catch (...) {
    return static_cast<int>(report_exception());
  }
}

}  // namespace headlab::tools
