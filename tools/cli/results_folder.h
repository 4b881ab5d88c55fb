// SPDX-License-Identifier: Apache-2.0
/// \file The folder with the results of a run: what may be there, resuming from it, writing it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/text_sink.h"
#include "engine/results/computed.h"
#include "engine/run/run.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/progress.h"
#include "tools/cli/run_arguments.h"

namespace headlab::tools {

/// What is said of a run.
struct RunReport {
  std::vector<ConditionIndices> indices;
  std::vector<ComputedCondition> theory;
};

/// Throws InvalidInput where options contradict one another or lack --out.
void require_run_arguments(const RunArguments& arguments);

/// Throws InvalidInput where results would be written over a file that the scenario reads.
void require_no_results_among_inputs(const OutputFolder& folder, const Scenario& scenario);

/// Keeps other runs out of the folder at `path`. Throws InvalidInput where earlier results are
/// there, unless they are to be resumed or replaced, or where they are read by the scenario.
void claim_results(OutputFolder& folder, const std::string& path, const Scenario& scenario,
                   bool resume, bool overwrite);

/// An earlier run that --resume finds in the folder of --out, if there is one. Calls say(line,
/// warns) with what is to be known of it, in words.
std::optional<Checkpoint> begun_in(const OutputFolder& folder, const RunArguments& arguments,
                                   const Scenario& scenario,
                                   const std::function<void(const std::string&, bool)>& say);

/// Writes the summary part by part; the arguments must outlive the writer.
std::function<void(const TextSink&)> summary_writer(const Scenario& scenario,
                                                    const RunResult& result,
                                                    const RunReport& report);

/// Writes what --out gets. In an empty folder the small file comes first: where the disk is full it
/// may still fit. Earlier results are replaced beginning with the large file, so that a full disk
/// leaves both as they were.
void write_results_folder(const OutputFolder& folder, const Scenario& scenario,
                          const RunResult& result, const RunReport& report, bool nodes);

/// What a run does at a checkpoint: write(so far). Why that failed is said on standard error, and
/// the run continues, since there may be room at the end.
/// \param what  "results"
std::function<void(const RunResult&)> checkpoint_of(ProgressDisplay& display,
                                                    const std::string& what,
                                                    std::function<void(const RunResult&)> write);

/// "1234 of 20000 replicates", and of which conditions where there are several: those that were
/// under way when the run stopped, or else the last one.
std::string kept_text(const Scenario& scenario, const RunResult& result);

/// Throws InvalidInput where `path` is a shard, or a folder of shards, that have yet to be merged
/// into results.
void require_merged(const std::string& path);

}  // namespace headlab::tools
