// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/report.h"

#include <iostream>
#include <iterator>

#include "engine/files/error.h"
#include "tools/report/read_sources.h"
#include "tools/report/write_report.h"

namespace headlab::tools {

ExitCode command_report(const ReportArguments& arguments) {
  if (arguments.folders.empty()) {
    throw InvalidInput("report: no folder given - write headlab report DIR");
  }
  require_report_writable("--out", arguments.out, arguments.folders);
  std::vector<Source> sources;
  SourceReader reader;
  for (const std::string& folder : arguments.folders) {
    std::vector<Source> found = reader.read(folder);
    std::move(found.begin(), found.end(), std::back_inserter(sources));
  }
  for (const std::string& note : reader.notes()) std::cerr << "headlab: " << note << "\n";
  write_report(arguments.out, sources);
  std::cerr << "headlab: wrote " << arguments.out << "\n";
  return ExitCode::done;
}

}  // namespace headlab::tools
