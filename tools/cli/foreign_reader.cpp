// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/foreign_reader.h"

#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <unistd.h>

#include "engine/files/foreign_files.h"
#include "engine/files/notes.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

/// No command: nobody types it.
constexpr const char* serve = "--serve-foreign-files";

}  // namespace

bool served_foreign_files(int argc, const char* const* argv) {
  if (argc == 2 && argv[1] == std::string_view(serve)) {
    try {
      serve_foreign_files();
    } catch (const std::bad_alloc&) {
      ::_exit(static_cast<int>(ExitCode::failed));  // by a signal it would be the work of a file
    }
    return true;
  }
  const std::string self = "/proc/self/exe";
  const bool knows_itself = ::access(self.c_str(), X_OK) == 0;
  set_foreign_files({.command = {knows_itself ? self : argv[0], serve}});
  set_notes(
      [](const std::string& line) { std::cerr << message_text(line, error_width()) << "\n"; });
  return false;
}

}  // namespace headlab::tools
