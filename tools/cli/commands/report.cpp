// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "tools/cli/commands/commands.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"

namespace headlab::tools {
namespace {

struct ReportArguments {
  Texts folders;
  std::string out = "report.html";

  void list(Options& options) {
    options.texts(
        "DIR", "",
        "Folders of --out, or files of --json: of run, theory, validate, allocate, hdi, heads, "
        "along",
        folders);
    options.text("--out", "FILE", "The file; the default is report.html", out);
  }
};

ExitCode report(const ReportArguments& arguments) {
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

}  // namespace

Command report_command() {
  return make_command(
      "report", "Write results as one HTML file with pictures, which needs no network", report);
}

}  // namespace headlab::tools
