// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/dataset.h"

#include <chrono>
#include <iostream>

#include "engine/dataset/write_dataset.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/run/memory.h"
#include "engine/run/simulate.h"
#include "engine/scenario/law_reader.h"
#include "kernels/parallel_for.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signal.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t most_shards = (std::uint64_t{1} << 40) - 1;

std::string counted(std::uint64_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::string percent(const DatasetProgress& progress) {
  return std::to_string(static_cast<int>(100 * progress.share)) + " %";
}

/// "1.2 GiB to write, 30 s left", or less while that is not known.
std::string in_words(const DatasetProgress& progress) {
  std::string text = format_bytes(progress.bytes) + (progress.checking ? " to check" : " to write");
  if (progress.share > 0) {
    const double left = progress.seconds * (1 - progress.share) / progress.share;
    text += ", " + duration_text(left) + " left";
  }
  return text;
}

std::string bar_line(const DatasetProgress& progress, std::size_t width) {
  constexpr std::size_t bar_width = 20;
  const std::string line = "▕" + left(bar(progress.share, bar_width), bar_width) + "▏" +
                           right(percent(progress), 5) + "  " + in_words(progress);
  if (display_width(line) <= width) return line;
  return width < 5 ? "" : right(percent(progress), 5);
}

std::string log_line(const DatasetProgress& progress) {
  return percent(progress) + " of " + in_words(progress);
}

DatasetRequest request_of(const DatasetArguments& arguments) {
  DatasetRequest request{.estimates = arguments.estimates, .weights = arguments.weights};
  if (arguments.format == name_of(DatasetFormat::npy)) {
    request.format = DatasetFormat::npy;
  } else if (arguments.format != name_of(DatasetFormat::netcdf)) {
    throw Refused("--format: \"" + one_line(arguments.format) + "\" is unknown" +
                  suggestion(arguments.format, {"netcdf", "npy"}));
  }
  if (arguments.shards) {
    request.shards = parse_whole_number("--shards", *arguments.shards, 1, most_shards);
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

}  // namespace

int command_dataset(const DatasetArguments& arguments) {
  const RunArguments& run = arguments.run;
  if (run.scenario.empty()) {
    throw Refused("dataset: no scenario given - write headlab dataset SCENARIO.toml");
  }
  if (!run.replicates) {
    throw Refused("dataset: no number of training sets given - write --replicates R");
  }
  if (!run.out) throw Refused("dataset: no folder given - write --out DIR");
  const DatasetRequest request = request_of(arguments);
  DatasetOptions options;
  if (arguments.only_shard) {
    options.only_shard =
        parse_whole_number("--only-shard", *arguments.only_shard, 0, most_shards - 1);
  }
  options.threads = parse_threads(run.threads);
  const Study study = read_study(run.scenario, all_sets(run));
  options.stop = stop_on_signals();
  const Dataset dataset = plan_dataset(study, request, thread_count(options.threads),
                                       {.stop = [&] { return options.stop->load(); }});
  const OutputFolder folder(*run.out);

  ProgressDisplay display = ProgressDisplay::on_standard_error(run.quiet);
  if (!run.quiet) {
    options.begin = [&](const DatasetWork& work) {
      display.finish("");
      say_work(work);
    };
    options.progress = [&](const DatasetProgress& progress) {
      display.show(
          progress.seconds, [&](std::size_t width) { return bar_line(progress, width); },
          [&] { return log_line(progress); });
    };
  }
  const auto start = std::chrono::steady_clock::now();
  DatasetResult result;
  try {
    result = write_dataset(dataset, *run.out, options, provenance());
  } catch (...) {
    display.finish("");
    throw;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  end_on_signals();
  display.finish("");
  if (result.interrupted && result.work.shards == 0) {
    throw CouldNotFinish("interrupted: nothing was written");
  }
  if (result.interrupted) {
    std::cerr << "headlab: interrupted: " << *run.out << " has "
              << counted(result.work.kept + result.written, "shard") << " of " << result.work.shards
              << " - the same command goes on from there\n";
    return 1;
  }
  if (!run.quiet && result.written > 0) {
    std::cerr << "headlab: wrote " << counted(result.written, "shard") << " in "
              << duration_text(seconds) << " and " << folder.file("manifest.json") << "\n";
  }
  return 0;
}

}  // namespace headlab::tools
