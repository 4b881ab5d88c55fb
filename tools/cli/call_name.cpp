// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/call_name.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/files/words.h"
#include "kernels/host.h"

namespace headlab::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view own_name = "headlab";

std::string call_name(own_name);
std::vector<std::string> command_names;

/// Whether a shell finds this file by the program's own name.
bool is_on_path(const fs::path& program) {
  const char* const path = environment_variable("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / own_name;
    std::error_code error;
    // A shell takes the first.
    if (fs::exists(candidate, error)) return fs::equivalent(candidate, program, error);
  }
  return false;
}

/// Whether a text begins with a space and a command.
bool names_command(std::string_view text) {
  if (text.empty() || text.front() != ' ') return false;
  text.remove_prefix(1);
  const std::string_view word =
      text.substr(0, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"));
  return std::ranges::find(command_names, word) != command_names.end();
}

}  // namespace

void set_call_name(const char* name, std::vector<std::string> commands) {
  command_names = std::move(commands);
  const std::string_view given(name == nullptr ? "" : name);
  const bool by_path = given.find('/') != std::string_view::npos;
  call_name =
      by_path && !is_on_path(given) ? shell_word(std::string(given)) : std::string(own_name);
}

std::string as_called(std::string_view text) {
  if (call_name == own_name) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const auto at = text.find(own_name);
    if (at == std::string_view::npos) break;
    const auto end = at + own_name.size();
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n';
    out += text.substr(0, at);
    out += begins && names_command(text.substr(end)) ? call_name : own_name;
    text.remove_prefix(end);
  }
  return out.append(text);
}

}  // namespace headlab::tools
