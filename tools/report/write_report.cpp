// SPDX-License-Identifier: Apache-2.0
#include "tools/report/write_report.h"

#include <filesystem>
#include <fstream>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/input_file.h"
#include "tools/cli/output_folder.h"
#include "tools/report/page.h"

namespace headlab::tools {
namespace {

/// True for a report, which says so in its head, and for an empty file.
bool is_report(const std::string& path) {
  constexpr std::size_t head = 1024;
  const std::string text = first_bytes(path, head);
  return text.empty() || text.find(report_generator) != std::string::npos;
}

}  // namespace

void require_report_writable(const std::string& option, const std::string& path,
                             const std::vector<std::string>& inputs) {
  if (path.empty() || path == "-") {
    throw InvalidInput(option + ": needs the name of a file - write " + option + " report.html");
  }
  require_no_input(option, path, inputs);
  require_writable(option, path);
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none) && !is_report(path)) {
    throw InvalidInput(option + ": " + one_line(path) +
                       ": is there already and is no report - choose another place");
  }
}

void write_report(const std::string& path, const std::vector<Source>& sources) {
  write_atomically(path, report_page(sources));
}

}  // namespace headlab::tools
