// SPDX-License-Identifier: Apache-2.0
/// \file The commands of the program: each lists its options and runs. With what they all use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/models/model_config.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "engine/results/stored_figures.h"
#include "tools/cli/characters.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/run_arguments.h"
#include "tools/cli/supervise.h"
#include "validation/difference/results_difference.h"
#include "validation/diversity/alike_heads.h"
#include "validation/heads/measure.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// A command with its options. What it does returns the exit code; it throws InvalidInput for what
/// it rejects, and RunFailed.
struct Command {
  std::string name;
  std::string summary;
  Options options = {};
  std::function<ExitCode()> run;  ///< once the options are read
};

template <class Arguments>
Command make_command(const char* name, const char* summary, ExitCode (*run)(const Arguments&)) {
  const auto arguments = std::make_shared<Arguments>();
  Command command{.name = name, .summary = summary, .run = [=] { return run(*arguments); }};
  arguments->list(command.options);
  return command;
}

Command run_command();
Command theory_command();
Command validate_command();
Command allocate_command();
Command dataset_command();
Command replay_command();
Command diff_command();
Command report_command();
Command table_command();
Command along_command();
Command plot_command();
Command merge_command();
Command status_command();
Command hdi_command();
Command import_heads_command();
Command compress_command();
Command import_activations_command();
Command heads_command();
Command prune_command();
Command init_command();
Command list_command();
Command doctor_command();
/// Prints what a shell needs to complete `commands`, of which the last, itself, is not named.
Command completion_command(const std::vector<Command>& commands);

/// `headlab run --dry-run`: prints the scenario as it was understood, a text that runs, under
/// comments that say what the run takes.
ExitCode dry_run(const RunArguments& arguments, const Scenario& scenario, const Session& session);

/// Throws InvalidInput where an option of `headlab run` has no meaning for a shard.
void require_fits_shard(const RunArguments& arguments);

/// `headlab run --shard`: simulates the share of one shard and writes its file.
ExitCode run_shard(const RunArguments& arguments, const std::shared_ptr<const Scenario>& scenario,
                   Session& session);

/// The arguments of `headlab import-heads`.
struct ImportHeadsArguments : CommonArguments {
  std::string checkpoint;
  const Architecture* architecture = nullptr;  ///< null: by model_type of config.json
  std::optional<int> layer;
  std::optional<std::string> config;
  std::optional<int> heads, kv_heads;
  std::optional<std::string> query, key, gain;  ///< names of tensors, of a model of no family
  bool biases = false;

  void list(Options& options);
};

/// The family and its counts: from --config or the config.json next to the checkpoint, or from
/// --arch and --heads. Throws InvalidInput.
ModelConfig model_config_of(const ImportHeadsArguments& arguments);

/// The median of the numbers, the larger of two in the middle.
std::string median_text(std::vector<double> numbers);

/// The diversity of every layer for a person; `file` is the name that heads it.
std::string diversity_text(const HeadDiversity& diversity, const std::string& file);

/// Two results side by side, for a person; and the document of --json.
std::string difference_text(const ResultsDifference& difference, const StoredResults& a,
                            const StoredResults& b);
std::string difference_json(const ResultsDifference& difference, const StoredResults& a,
                            const StoredResults& b);

/// The most alike pairs of heads, a line each, heads with one subspace together; then what the
/// comparison does not say.
std::string alike_text(const HeadDiversity& diversity, const AlikeHeads& alike);

/// A share between 0 and 1 of "25%", "0.3 %" or "0.25"; throws InvalidInput, naming `option` and
/// the `alternative` to a share, as "all, or ".
double parse_share(const std::string& option, const std::string& text,
                   const std::string& alternative = "");

/// What heads do on text, for a person: tables of heads, layers and the `top` pairs, then words.
/// \param noise  kind of the noise that the table of layers has
std::string measured_text(const MeasuredHeads& heads, const std::string& noise, std::size_t top);

/// Throws InvalidInput where no NetCDF file can be written to --out, or it is one of `inputs`.
void require_netcdf_out(const std::string& path, const Texts& inputs, bool overwrite);

/// A check of `headlab doctor`, with the figures compared.
struct SelfTestCheck {
  std::string name;
  bool passed = false;
  std::string detail;
};

/// Passes where |value - expected| <= 4 MCSE; not for NaN, nor for an MCSE of 0.
SelfTestCheck compare_estimate(const std::string& name, const Estimate& figure, double expected);

/// Passes where |value - expected| <= tolerance; not for NaN.
SelfTestCheck compare_exact(const std::string& name, double value, double expected,
                            double tolerance);

/// What `headlab list` can be asked for.
const Texts& list_words();

/// "--layer L|all"; nothing for all.
void list_layer(Options& options, std::optional<int>& layer);

/// "--layout bhtk|bthk".
void list_layout(Options& options, std::string& layout);

/// Throws InvalidInput where a file of --json, --report or --table cannot be written, or is one of
/// `inputs`.
void require_documents(const CommonArguments& arguments, const Texts& inputs = {});

/// The files of --json, --report and --table, with the document `json`, behind `files`, are
/// written, with words on standard error unless --quiet.
void write_documents(const CommonArguments& arguments, const std::string& json,
                     std::vector<TextFile> files = {});

/// Prints `json` where --json is -, and `table` otherwise.
void print_document(const CommonArguments& arguments, const std::string& json,
                    const std::function<std::string()>& table);

}  // namespace headlab::tools
