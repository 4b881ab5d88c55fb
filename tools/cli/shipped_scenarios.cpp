// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/shipped_scenarios.h"

#include <algorithm>
#include <system_error>

#include "engine/files/document.h"
#include "engine/files/folder.h"
#include "engine/files/words.h"

namespace headlab::tools {
namespace fs = std::filesystem;
namespace {

void add_scenarios_in(const fs::path& folder, std::vector<fs::path>& files) {
  for (const std::string& name : names_in(folder.string())) {
    const fs::path path = folder / name;
    std::error_code none;
    if (path.extension() == ".toml") {
      files.push_back(path);
    } else if (name != "claims" &&  // headlab list claims
               fs::symlink_status(path, none).type() == fs::file_type::directory) {
      add_scenarios_in(path, files);
    }
  }
}

}  // namespace

fs::path scenario_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  std::vector<fs::path> places;
  if (!error) {
    places.push_back(program.parent_path().parent_path() / "share" / "headlab" / "scenarios");
  }
#ifdef HEADLAB_SCENARIO_DIR
  places.emplace_back(HEADLAB_SCENARIO_DIR);
#endif
#ifdef HEADLAB_SCENARIO_INSTALL_DIR
  places.emplace_back(HEADLAB_SCENARIO_INSTALL_DIR);
#endif
  for (const fs::path& place : places) {
    if (fs::is_directory(place, error)) return place;
  }
  return {};
}

std::vector<fs::path> shipped_scenarios() {
  std::vector<fs::path> files;
  add_scenarios_in(scenario_folder(), files);
  std::ranges::sort(files);
  return files;
}

std::string advice_on_missing_scenario(const std::string& file) {
  // One in the same folder, of another case or without its ending.
  const fs::path path(file);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> beside;
  std::error_code error;
  for (const std::string& other : names_in(folder.string(), error)) {
    if (other.ends_with(".toml")) beside.push_back(fs::path(other).stem().string());
  }
  const std::string name = path.stem().string();
  if (const std::string near = closest(name, beside); !near.empty()) {
    return " - did you mean " + shell_word((path.parent_path() / (near + ".toml")).string()) + "?";
  }
  const std::vector<fs::path> files = shipped_scenarios();
  std::vector<std::string> names;
  for (const fs::path& one : files) names.push_back(one.stem().string());
  const bool there = std::ranges::find(names, name) != names.end();
  const std::string meant = there ? name : closest(name, names);
  if (meant.empty()) return "";
  const auto at = std::ranges::find(names, meant) - names.begin();
  return " - " + (there ? "one of this name" : "\"" + meant + "\"") +
         " comes along: " + shell_word(files[static_cast<std::size_t>(at)].string()) +
         " (all of them: headlab list scenarios)";
}

}  // namespace headlab::tools
