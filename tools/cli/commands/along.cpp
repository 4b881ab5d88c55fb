// SPDX-License-Identifier: Apache-2.0
#include "tools/tables/along.h"

#include "tools/cli/commands/commands.h"
#include "tools/cli/results_folder.h"

namespace headlab::tools {
namespace {

struct AlongArguments : CommonArguments {
  std::string result;
  std::optional<std::string> over;
  AlongRequest request = {};

  void list(Options& options) {
    options.text("DIR", "", "A folder of headlab run --out, with results.nc", result);
    options.text("--over", "KEY", "The swept key along which the figure is seen", over);
    options.text("--figure", "NAME", "A figure averaged over queries; the default is mse",
                 request.figure);
    options.text("--min-over", "KEY", "At each value the least over this key, as a bandwidth",
                 request.min_over);
    options.flag("--slope", "Fit the slope of the logarithm of the figure on that of the key",
                 request.slope);
    take(options,
         {{"--json", "Write this to a file, or - for standard output"}, "--report", "--table"});
  }
};

ExitCode along(const AlongArguments& arguments) {
  if (arguments.result.empty() || !arguments.over) {
    throw InvalidInput("along: needs results and a key - write headlab along DIR --over data.n");
  }
  require_merged(arguments.result);
  const StoredResults results(arguments.result);
  require_documents(arguments, {results.path()});
  AlongRequest request = arguments.request;
  request.over = *arguments.over;
  const Along seen = along(results, request);
  write_documents(arguments, seen.json);
  print_document(arguments, seen.json, [&] { return seen.text; });
  return ExitCode::done;
}

}  // namespace

Command along_command() {
  return make_command("along", "See a figure along a swept key: slope, lowest point, crossings",
                      along);
}

}  // namespace headlab::tools
