// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/replacement.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/folder.h"

namespace headlab {
namespace {

constexpr const char* manifest_name = "manifest.json";

std::string new_set_of(const std::string& folder) {
  return folder + "/.headlab-new";
}
/// The manifest of the old set while it is exchanged.
std::string old_manifest_of(const std::string& folder) {
  return new_set_of(folder) + "/replaced.json";
}

bool is_there(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}
bool is_folder(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw cannot_be_written(to, errno);
  flush_folder_of(from);
  flush_folder_of(to);
}

RunFailed cannot_be_removed(const std::string& path, int error) {
  return RunFailed(path + ": cannot be removed (" + std::strerror(error) +
                   ") - the same command goes on once it can be");
}

/// What fails to go stops the replacement where it is, so that the next call comes back to it:
/// once the old manifest is gone nothing says that headlab wrote the file.
void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw cannot_be_removed(path, errno);
}

/// Removes a file of a data set, and the folders that are empty then, down to `folder`. Nothing
/// that a link leads to.
void remove_file_of(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  std::vector<std::string> folders;  // innermost first
  for (std::string at = folder_of(path); at.size() > folder.size(); at = folder_of(at)) {
    if (!is_folder(at)) return;
    folders.push_back(at);
  }
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) remove_file(path);
  for (const std::string& at : folders) {
    if (::rmdir(at.c_str()) == 0) continue;
    if (errno != ENOTEMPTY && errno != EEXIST) throw cannot_be_removed(at, errno);
    break;
  }
}

/// The names of what is in folders condition_... of a folder, folders and links not entered beyond
/// those that a data set has.
std::vector<std::string> names_in_conditions(const std::string& folder) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& at, const std::string& start, const auto& enter) {
    for (const std::string& name : names_in(folder + "/" + at)) {
      if (!name.starts_with(start)) continue;
      if (is_folder(folder + "/" + at + name)) enter(at + name + "/");
      if (!at.empty()) names.push_back(at + name);
    }
  };
  add("", "condition_", [&](const std::string& condition) {
    add(condition, "",
        [&](const std::string& shard) { add(shard, "", [](const std::string&) {}); });
  });
  return names;
}

/// Removes what the program has written of a data set in the folder of a new one.
void remove_set(const std::string& folder) {
  for (const std::string& name : names_in_conditions(folder)) {
    if (is_file_of_data_set(name)) remove_file_of(folder, name);
  }
  remove_file(folder + "/" + manifest_name);
  ::rmdir(folder.c_str());
}

}  // namespace

std::string begin_replacement(const std::string& folder, const Dataset& dataset,
                              const Provenance& program) {
  const std::string place = new_set_of(folder);
  if (!difference_to_manifest(place + "/" + manifest_name, dataset, program).empty()) {
    remove_set(place);
  }
  make_folder(place);
  return place;
}

bool is_being_replaced(const std::string& folder) {
  const std::string place = new_set_of(folder);
  return is_there(old_manifest_of(folder)) ||
         (is_there(place) && !is_there(place + "/" + manifest_name));
}

std::vector<std::string> end_replacement(const std::string& folder,
                                         const std::function<bool()>& stop) {
  const FolderLock lock(folder, stop);
  const std::string place = new_set_of(folder), manifest = folder + "/" + manifest_name,
                    next = place + "/" + manifest_name, old = old_manifest_of(folder);
  std::vector<std::string> left;
  if (const FilesOfManifest files = files_of_manifest(next); files.complete) {
    if (!is_there(old) && is_there(manifest)) rename_file(manifest, old);
    const std::set<std::string> ours(files.names.begin(), files.names.end());
    for (const std::string& name : files_of_manifest(old).names) {
      if (!ours.contains(name)) remove_file_of(folder, name);
    }
    std::set<std::string> folders;
    for (const std::string& name : files.names) {
      const std::string from = place + "/" + name, to = folder + "/" + name;
      // It has been moved where this was cut short.
      if (!is_there(from)) continue;
      for (const std::string& at : {folder_of(folder_of(to)), folder_of(to)}) {
        if (at.size() > folder.size() && folders.insert(at).second) make_folder(at);
      }
      move_made(from, to);
    }
    for (const std::string& at : folders) flush_folder_of(at + "/file");
    for (const std::string& name : names_in_conditions(folder)) {
      if (!ours.contains(name) && !is_folder(folder + "/" + name)) left.push_back(name);
    }
    rename_file(next, manifest);
  }
  if (is_there(next)) return left;
  remove_file(old);
  for (const std::string& name : names_in_conditions(place)) {
    if (is_folder(place + "/" + name)) ::rmdir((place + "/" + name).c_str());
  }
  for (const std::string& name : names_in(place)) ::rmdir((place + "/" + name).c_str());
  ::rmdir(place.c_str());
  return left;
}

}  // namespace headlab
