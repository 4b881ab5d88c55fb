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
#include "tools/cli/characters.h"
#include "tools/cli/kept_units.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/supervise.h"
#include "validation/verdicts/calibration_json.h"
#include "validation/verdicts/calibration_studies.h"

namespace headlab::tools {

ExitCode command_calibrate(const ValidateArguments& arguments) {
  if (!arguments.claims.empty()) {
    throw InvalidInput("--calibrate: takes no claim, its studies are fixed - leave out \"" +
                       one_line(arguments.claims.front()) + "\"");
  }
  if (arguments.run.replicates) {
    throw InvalidInput(
        "--replicates: not with --calibrate, whose studies have their own - use --level");
  }
  if (arguments.run.report) {
    throw InvalidInput("--report: is for verdicts, not with --calibrate - use --out");
  }
  Session session = session_of(arguments.run);
  // It suits runs as small as these.
  if (arguments.run.backend == "auto") session.backend = "cpu";
  CalibrateOptions options{.full = is_full(arguments.level)};
  if (arguments.run.seed) options.seed = parse_seed(*arguments.run.seed);
  require_out(arguments.run.overwrite, arguments.run.out);
  std::optional<OutputFolder> folder;
  if (arguments.run.out) folder.emplace(*arguments.run.out);
  if (folder && !arguments.run.overwrite && !continues_units(arguments.run)) {
    folder->require_none_of({"calibration.json", "calibration.md"}, overwrite_only);
  }
  KeptUnits kept(arguments.run, folder ? &*folder : nullptr, "validate --calibrate",
                 {arguments.level, std::to_string(options.seed)}, session);
  const auto ended = kept.ended_before(arguments.run, folder ? &*folder : nullptr,
                                       {"calibration.json", "calibration.md"});
  if (ended) return *ended;
  const std::optional<std::string>& json = arguments.run.json;
  if (json && *json != "-") require_writable("--json", *json);

  const Calibration calibration = supervise(
      session, arguments.run, show_count,
      [&](ProgressDisplay&) { return calibrate(calibration_studies(session), session, options); });

  if (kept.is_shard()) return kept.end_shard(calibration.outcome);

  const std::string rates = calibration_json(calibration, provenance());
  std::vector<TextFile> files;
  if (folder) {
    files.emplace_back(folder->file("calibration.json"), rates);
    files.emplace_back(folder->file("calibration.md"), calibration_report(calibration));
  }
  if (json && *json != "-") files.emplace_back(*json, rates);
  std::cout << (json == "-" ? rates : shown(calibration_table(calibration)));
  finish_standard_output();
  write_files(files, arguments.run.quiet);
  kept.end(calibration.outcome, exit_code_of(calibration), true);
  say_ending(calibration.outcome, "rates are of the runs that were done");
  return exit_code_of(calibration);
}

}  // namespace headlab::tools
