// SPDX-License-Identifier: Apache-2.0
/// \file The arguments of `headlab run`: an option is its member and its line in the list. The
/// Python function has it by the same name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/moments/precision.h"
#include "tools/cli/options.h"

namespace headlab::tools {

struct RunArguments : CommonArguments {
  bool nodes = true;
  std::vector<PrecisionTarget> until;
  std::optional<std::string> against, difference;
  std::optional<std::string> replicate_figures;
  std::optional<std::uint64_t> first_replicates;  ///< of each condition; else all
  bool compare = false;
  bool dry_run = false;

  void list(Options& options) {
    take(options, {"SCENARIO.toml",
                   "--set",
                   "--out",
                   {"--json", "Write the summary to a file, or - for standard output"},
                   "--report",
                   "--table"});
    options.flag("--resume", "Resume the run whose results are in --out; --replicates may be more",
                 resume);
    take(options, {"--overwrite"});
    options.time("--checkpoint", "Write the results so far to --out every TIME; the default is 1m",
                 checkpoint);
    options.choice("--nodes", "WORD",
                   "all, or none: --out keeps figures alone, for large sweeps; no --resume later",
                   nodes, {{"all", true}, {"none", false}});
    options.flag("--compare", "Compare the simulation with closed forms, with z", compare);
    options.value("--until", "FIGURE=MCSE,...",
                  "Stop once standard errors are this small: mse=1%, output_correlation=0.005, "
                  "mse@#3=1% for condition #3, difference_mse=2e-5 with --against; --replicates is "
                  "then the most",
                  [this](const std::string& text) { until = parse_until(text); });
    options.text("--against", "CONDITION",
                 "Subtract a condition from the others: #3, from 0, or a swept KEY=VALUE", against);
    options.text("--difference", "KEY",
                 "Subtract the condition with the first value of a swept key", difference);
    options.text("--replicate-figures", "FILE",
                 "Write estimate, truth and squared error of single replicates, to .csv or .nc",
                 replicate_figures);
    options.number("--first-replicates", "K", "Write the first K of each condition; else all",
                   first_replicates, 1, 1ULL << 40);
    take(options,
         {{"--shard",
           "Simulate one share of N alone, I from 1 to N, for headlab merge; auto: as Slurm "
           "or MPI number it"}});
    options.flag("--dry-run",
                 "Print the scenario with all defaults and what the run takes; write nothing",
                 dry_run);
    take(options, simulation);
  }
};

}  // namespace headlab::tools
