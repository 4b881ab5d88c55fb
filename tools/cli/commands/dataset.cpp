// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/dataset.h"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>

#include "engine/dataset/write_dataset.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/run/memory.h"
#include "engine/scenario/law_reader.h"
#include "kernels/parallel_for.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/scenario_argument.h"
#include "tools/cli/supervise.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_shards = (std::uint64_t{1} << 40) - 1;

std::string counted(std::uint64_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

/// "1.2 GiB to write, 30 s left", or less while that is not known.
std::string in_words(const Progress& progress) {
  std::string text = format_bytes(progress.total) + " " + progress.what;
  if (!std::isnan(progress.seconds_left)) {
    text += ", " + duration_text(progress.seconds_left) + " left";
  }
  return text;
}

std::string bar_line(const Progress& progress, std::size_t width) {
  constexpr std::size_t bar_width = 20;
  const std::string line = "▕" + left(bar(progress.share, bar_width), bar_width) + "▏" +
                           right(percent(progress), 5) + "  " + in_words(progress);
  if (display_width(line) <= width) return line;
  return width < 5 ? "" : right(percent(progress), 5);
}

void show(ProgressDisplay& display, const Progress& progress, double seconds) {
  display.show(
      seconds, [&](std::size_t width) { return bar_line(progress, width); },
      [&] { return percent(progress) + " of " + in_words(progress); });
}

DatasetRequest request_of(const DatasetArguments& arguments) {
  DatasetRequest request{.estimates = arguments.estimates, .weights = arguments.weights};
  if (arguments.format == name_of(DatasetFormat::npy)) {
    request.format = DatasetFormat::npy;
  } else if (arguments.format != name_of(DatasetFormat::netcdf)) {
    throw InvalidInput("--format: \"" + one_line(arguments.format) + "\" is unknown" +
                       suggestion(arguments.format, {"netcdf", "npy"}));
  }
  if (arguments.shards) {
    request.shards = parse_whole_number("--shards", *arguments.shards, 1, max_shards);
  }
  return request;
}

/// Before anything is written: how much it is, and what is there already.
void say_work(const DatasetWork& work) {
  std::cerr << "headlab: " << counted(work.conditions, "condition") << ", "
            << counted(work.shards, "shard") << ", " << format_bytes(work.bytes) << " to write\n";
  if (work.kept > 0) {
    std::cerr << "headlab: kept " << counted(work.kept, "shard") << ", intact by their SHA-256\n";
  }
  if (work.damaged > 0) {
    std::cerr << "headlab: " << counted(work.damaged, "shard")
              << " missing or changed since they were written: written again\n";
  }
}

void say_left(const std::vector<std::string>& left, const std::string& folder) {
  if (left.empty()) return;
  std::cerr << "headlab: left in " << one_line(folder)
            << ", not of a data set: " << one_line(left.front());
  if (left.size() > 1) std::cerr << " and " << left.size() - 1 << " more";
  std::cerr << "\n";
}

}  // namespace

ExitCode command_dataset(const DatasetArguments& arguments) {
  const RunArguments& run = arguments.run;
  if (run.scenario.empty()) {
    throw InvalidInput("dataset: no scenario given - write headlab dataset SCENARIO.toml");
  }
  if (!run.replicates) {
    throw InvalidInput("dataset: no number of training sets given - write --replicates R");
  }
  if (!run.out) throw InvalidInput("dataset: no folder given - write --out DIR");
  const DatasetRequest request = request_of(arguments);
  DatasetOptions options;
  if (arguments.only_shard) {
    options.only_shard =
        parse_whole_number("--only-shard", *arguments.only_shard, 0, max_shards - 1);
  }
  if (!run.overwrite) {
    for (const char* name : {"results.nc", "summary.json"}) {
      require_nothing_at((std::filesystem::path(*run.out) / name).string(), overwrite_only);
    }
  }
  options.overwrite = run.overwrite;
  Session session{.threads = parse_threads(run.threads, run.quiet)};
  limit(session, run);
  const Scenario scenario =
      read_supervised(run.scenario, all_sets(run), session, run.quiet, {.depth = false});
  std::optional<OutputFolder> folder;
  const DatasetResult result = supervise(session, run, show, [&](ProgressDisplay& display) {
    const Dataset dataset = plan_dataset(scenario, request, session);
    folder.emplace(*run.out);
    if (!run.quiet) {
      options.begin = [&](const DatasetWork& work) {
        display.finish("");
        say_work(work);
      };
    }
    DatasetResult written = write_dataset(dataset, *run.out, session, options, provenance());
    display.finish("");
    return written;
  });
  const Outcome& outcome = result.outcome;
  if (!outcome.complete && result.work.shards == 0) {
    return ended(outcome, "nothing was written");
  }
  if (outcome.complete && !run.quiet && result.written > 0) {
    std::cerr << "headlab: wrote " << counted(result.written, "shard") << " in "
              << duration_text(outcome.seconds) << " and " << one_line(result.folder)
              << "/manifest.json\n";
    if (result.folder != *run.out) {
      std::cerr << "headlab: takes the place of the data set in " << one_line(*run.out)
                << " once all of its shards are there\n";
    }
  }
  say_left(result.left, *run.out);
  return ended(outcome, result.folder + " has " +
                            counted(result.work.kept + result.written, "shard") + " of " +
                            std::to_string(result.work.shards) +
                            " - the same command resumes there");
}

}  // namespace headlab::tools
