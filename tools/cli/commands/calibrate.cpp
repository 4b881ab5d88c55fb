// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/calibrate.h"

#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "tools/cli/calibration_table.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signal.h"
#include "validation/verdicts/calibration_json.h"
#include "validation/verdicts/calibration_studies.h"

namespace headlab::tools {
namespace {

/// Some rate does not pass, or there were not enough runs to say.
constexpr int not_passed = 3;

void show(ProgressDisplay& display, const CalibrationProgress& progress) {
  const std::string count =
      std::to_string(progress.done) + " of " + std::to_string(progress.total) + " runs";
  display.show(
      progress.seconds,
      [&](std::size_t width) {
        constexpr std::size_t bar_width = 20;
        const double share =
            static_cast<double>(progress.done) / static_cast<double>(progress.total);
        const std::string line = "▕" + left(bar(share, bar_width), bar_width) + "▏ " + count;
        return display_width(line) <= width ? line : "";
      },
      [&] { return count; });
}

}  // namespace

int command_calibrate(const ValidateArguments& arguments) {
  if (!arguments.claims.empty()) {
    throw Refused("--calibrate: takes no claim, its studies are fixed - leave out \"" +
                  one_line(arguments.claims.front()) + "\"");
  }
  if (arguments.run.replicates) {
    throw Refused("--replicates: not with --calibrate, whose studies have their own - use --level");
  }
  const RunOptions run = run_options(arguments.run);
  CalibrateOptions options{.backend = run.backend,
                           .threads = run.threads,
                           .full = is_full(arguments.level),
                           .max_seconds = run.max_seconds};
  if (arguments.run.seed) options.seed = parse_seed(*arguments.run.seed);
  std::optional<OutputFolder> folder;
  if (arguments.run.out) folder.emplace(*arguments.run.out);
  const std::optional<std::string>& json = arguments.run.json;
  if (json && *json != "-") require_writable("--json", *json);

  options.stop = stop_on_signals();
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.run.quiet);
  options.progress = [&](const CalibrationProgress& progress) { show(display, progress); };
  Calibration calibration;
  try {
    calibration = calibrate(calibration_studies(options.backend, options.threads), options);
  } catch (...) {
    display.finish("");
    throw;
  }
  end_on_signals();
  display.finish(calibration.complete ? "done in " + duration_text(calibration.seconds) : "");

  const std::string rates = calibration_json(calibration, provenance());
  std::vector<TextFile> files;
  if (folder) {
    files.emplace_back(folder->file("calibration.json"), rates);
    files.emplace_back(folder->file("calibration.md"), calibration_report(calibration));
  }
  if (json && *json != "-") files.emplace_back(*json, rates);
  std::cout << (json == "-" ? rates : calibration_table(calibration));
  finish_standard_output();
  write_files(files, arguments.run.quiet);
  if (calibration.interrupted) {
    std::cerr << "headlab: interrupted: rates are of the runs that were done\n";
    return 1;
  }
  if (!calibration.complete) {
    std::cerr << "headlab: --max-time reached: rates are of the runs that were done\n";
  }
  return calibration.pass().value_or(false) ? 0 : not_passed;
}

}  // namespace headlab::tools
