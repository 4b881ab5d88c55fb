// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/dataset/write_dataset.h"
#include "engine/files/json_writer.h"
#include "engine/files/sha256.h"
#include "engine/run/memory.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/commands/commands.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_shards = (std::uint64_t{1} << 40) - 1;

struct DatasetArguments : CommonArguments {
  DatasetRequest request;
  DatasetOptions choices;

  void list(Options& options) {
    take(options, {"SCENARIO.toml",
                   "--set",
                   {"--replicates", "Training sets of each condition"},
                   {"--out", "Write manifest.json and the shards here"},
                   "--overwrite"});
    options.number("--shards", "S", "Shards of each condition; by default each has at most 256 MiB",
                   request.shards, 1, max_shards);
    options.number("--only-shard", "I",
                   "Write this shard alone, from 0 to S - 1 (those of run --shard count from 1)",
                   choices.only_shard, 0, max_shards - 1);
    options.choice("--format", "NAME", "netcdf (the default) or npy", request.format,
                   {{"netcdf", DatasetFormat::netcdf}, {"npy", DatasetFormat::npy}});
    options.flag("--estimates", "Write the heads' estimates too", request.estimates);
    options.flag("--weights", "Write the attention weights too", request.weights);
    take(options,
         {"--threads", {"--seed", "Seed of the draws, instead of the scenario's"}, "--quiet"});
  }
};

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

/// What all commands of one data set have in common, in one line; those of another one would take
/// its files.
std::string work_of(const Dataset& planned) {
  const DatasetRequest& request = planned.request;
  Texts parts = {request.format == DatasetFormat::npy ? "npy" : "netcdf",
                 request.estimates ? "estimates" : "", request.weights ? "weights" : ""};
  for (const DatasetCondition& one : planned.conditions) {
    parts.push_back(to_json(one.condition->parameters.tree()));
    for (const std::uint64_t number :
         {one.shards, one.condition->replicates, one.condition->seed}) {
      parts.push_back(std::to_string(number));
    }
  }
  return "data set " + sha256_of_texts(parts);
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

ExitCode dataset(const DatasetArguments& arguments) {
  if (arguments.scenario.empty()) {
    throw InvalidInput("dataset: no scenario given - write headlab dataset SCENARIO.toml");
  }
  if (!arguments.replicates) {
    throw InvalidInput("dataset: no number of training sets given - write --replicates R");
  }
  if (!arguments.out) throw InvalidInput("dataset: no folder given - write --out DIR");
  DatasetOptions options = arguments.choices;
  if (!arguments.overwrite) {
    for (const char* name : {"results.nc", "summary.json"}) {
      require_nothing_at((std::filesystem::path(*arguments.out) / name).string(), overwrite_only);
    }
  }
  options.overwrite = arguments.overwrite;
  Session session{.threads = threads_of(arguments)};
  limit(session, arguments);
  const Scenario scenario =
      read_supervised(arguments.scenario, arguments, session, {.depth = false});
  std::optional<OutputFolder> folder;
  const DatasetResult result = supervise(session, arguments, show, [&](ProgressDisplay& display) {
    const Dataset planned = plan_dataset(scenario, arguments.request, session);
    folder.emplace(*arguments.out);
    folder->share(work_of(planned));
    if (!arguments.quiet) {
      options.begin = [&](const DatasetWork& work) {
        display.finish("");
        say_work(work);
      };
    }
    DatasetResult written = write_dataset(planned, *arguments.out, session, options, provenance());
    display.finish("");
    return written;
  });
  const Outcome& outcome = result.outcome;
  if (!outcome.complete && result.work.shards == 0) {
    return ended(outcome, "nothing was written");
  }
  if (outcome.complete && !arguments.quiet && result.written > 0) {
    std::cerr << "headlab: wrote " << counted(result.written, "shard") << " in "
              << duration_text(outcome.seconds) << " and " << one_line(result.folder)
              << "/manifest.json\n";
    if (result.folder != *arguments.out) {
      std::cerr << "headlab: takes the place of the data set in " << one_line(*arguments.out)
                << " once all of its shards are there\n";
    }
  }
  say_left(result.left, *arguments.out);
  return ended(outcome, result.folder + " has " +
                            counted(result.work.kept + result.written, "shard") + " of " +
                            std::to_string(result.work.shards) +
                            " - the same command resumes there");
}

}  // namespace

Command dataset_command() {
  return make_command("dataset", "Write the training sets of a scenario", dataset);
}

}  // namespace headlab::tools
