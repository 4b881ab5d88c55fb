// SPDX-License-Identifier: Apache-2.0
#include "engine/run/units.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/folder.h"

namespace headlab {
std::string units_file_name(std::uint64_t shard, std::uint64_t shards) {
  return "units_" + std::to_string(shard) + "_of_" + std::to_string(shards) + ".nc";
}

std::vector<std::string> units_files_in(const std::string& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [](const std::string& name) {
    return !name.starts_with("units_") || !name.ends_with(".nc");
  });
  return names;
}

Units::Units(UnitsPlan plan)
    : plan_(std::move(plan)),
      file_{.command = plan_.command,
            .study = plan_.study,
            .shard = plan_.shard,
            .shards = plan_.shards} {
  next_save_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(plan_.save_seconds));
  if (is_shard()) require_same_study();
  if (!plan_.resumes) return;
  for (const std::string& name : units_files_in(plan_.folder)) {
    const bool own = name == units_file_name(plan_.shard, plan_.shards);
    // Another shard may be writing its own, and this one needs nothing of it.
    if (!own && is_shard()) continue;
    const std::string path = (std::filesystem::path(plan_.folder) / name).string();
    UnitFile file = read_unit_file("--resume", path);
    require_unit_file("--resume", path, file, plan_.command, plan_.study);
    found_ += file.units.size();
    if (own) file_.exit_code = file.exit_code;
    (own ? file_.units : others_).merge(file.units);
  }
}

void Units::require_same_study() const {
  const std::string cut = "_of_" + std::to_string(plan_.shards) + ".nc";
  for (const std::string& name : units_files_in(plan_.folder)) {
    const std::string path = (std::filesystem::path(plan_.folder) / name).string();
    // That of one process, which was begun before the shards, is joined too.
    if (name != units_file_name(1, 1) && !name.ends_with(cut)) {
      throw InvalidInput("--shard: " + path + ": is of another number of shards than " +
                         std::to_string(plan_.shards) + " - choose another folder");
    }
  }
  for (const std::string& name : units_files_in(plan_.folder)) {
    if (name == units_file_name(plan_.shard, plan_.shards)) continue;
    const std::string path = (std::filesystem::path(plan_.folder) / name).string();
    std::optional<UnitFile> other;
    try {
      other = read_unit_file("--shard", path);
    } catch (const InvalidInput&) {
      continue;  // what joins the files names it
    }
    require_unit_file("--shard", path, *other, plan_.command, plan_.study);
    return;
  }
}

std::optional<std::string> Units::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const std::string* found = nullptr;
  // Of one that was continued elsewhere the longer part.
  for (const auto* units : {&file_.units, &others_}) {
    const auto at = units->find(name);
    if (at == units->end()) continue;
    if (!found || found->size() < at->second.size()) found = &at->second;
  }
  return found ? std::optional(*found) : std::nullopt;
}

void Units::keep(const std::string& name, std::string bytes) {
  const std::lock_guard lock(mutex_);
  file_.units[name] = std::move(bytes);
  file_.exit_code.reset();
  changed_ = true;
  const Clock::time_point start = Clock::now();
  if (start < next_save_) return;
  try {
    write(false);
  } catch (const RunFailed& error) {
    // There may be room at the end.
    if (plan_.problem) plan_.problem(error.what());
  }
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(plan_.save_seconds));
  next_save_ = Clock::now() + std::max(interval, 20 * (Clock::now() - start));
}

std::string Units::next_name(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return name + " #" + std::to_string(names_[name]++);
}

void Units::save(bool complete, bool anyway) {
  const std::lock_guard lock(mutex_);
  std::error_code none;
  const bool lacks = anyway && !std::filesystem::exists(path(), none);
  if (changed_ || complete || lacks) write(complete);
}

void Units::finish(int exit_code) {
  const std::lock_guard lock(mutex_);
  file_.units.clear();
  file_.exit_code = exit_code;
  write(true);
}

void Units::write(bool complete) {
  file_.complete = complete;
  write_unit_file(path(), file_);
  changed_ = false;
}

std::string Units::path() const {
  return (std::filesystem::path(plan_.folder) / units_file_name(plan_.shard, plan_.shards))
      .string();
}

}  // namespace headlab
