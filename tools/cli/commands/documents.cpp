// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/commands.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"
#include "tools/tables/write_table.h"

namespace headlab::tools {

void require_documents(const CommonArguments& arguments, const Texts& inputs) {
  if (arguments.json && arguments.json != "-") require_json_writable(*arguments.json, inputs);
  if (arguments.report) require_report_writable("--report", *arguments.report, inputs);
  if (arguments.table) require_table_writable("--table", *arguments.table, inputs);
  require_different_files(
      {{"--report", arguments.report}, {"--table", arguments.table}, {"--json", arguments.json}});
}

void write_documents(const CommonArguments& arguments, const std::string& json,
                     std::vector<TextFile> files) {
  if (arguments.json && arguments.json != "-") files.emplace_back(*arguments.json, json);
  if (arguments.report) {
    files.emplace_back(*arguments.report, report_page({source_of_document(json)}));
  }
  if (arguments.table) {
    files.emplace_back(*arguments.table, table_text(*arguments.table, table_of_text(json)));
  }
  write_files(files, arguments.quiet);
}

void print_document(const CommonArguments& arguments, const std::string& json,
                    const std::function<std::string()>& table) {
  print(arguments.json == "-" ? json : shown(table()));
}

}  // namespace headlab::tools
