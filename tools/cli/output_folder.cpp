// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_folder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <map>
#include <new>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/folder.h"
#include "engine/files/temporary_path.h"
#include "tools/cli/stop_signal.h"

namespace headlab::tools {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void reject_path(const std::string& option, const fs::path& path,
                              const std::string& problem) {
  throw InvalidInput(option + ": " + one_line(path.string()) + ": " + problem +
                     " - choose a place you may write to");
}

/// Makes and removes a file in `folder`: permission bits do not tell of a read-only disk.
void try_folder(const std::string& option, const fs::path& path, const fs::path& folder) {
  for (const std::string& left : clear_temporaries(folder.string())) {
    std::cerr << "headlab: " << one_line(left)
              << ": was left by another machine, it seems - remove it if nothing writes to it\n";
  }
  const std::string probe = temporary_name((folder / ".headlab").string());
  const ScratchPath scratch(probe);
  const int descriptor =
      ::open(probe.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    reject_path(option, path, std::string("cannot be written (") + std::strerror(errno) + ")");
  }
  ::close(descriptor);
  ::unlink(probe.c_str());
}

}  // namespace

OutputFolder::OutputFolder(const std::string& path) : path_(path) {
  if (path.empty()) throw InvalidInput("--out: is empty - give a folder");
  if (path == "-") {
    throw InvalidInput("--out: is -, which stands for standard output - give a folder");
  }
  std::error_code error;
  require_replaceable("--out", path, true);
  for (fs::path part = path_; !part.empty() && !fs::exists(part, error);
       part = part.parent_path()) {
    first_made_ = part;
    if (part == part.parent_path()) break;
  }
  fs::create_directories(path_, error);
  if (error) reject_path("--out", path_, "cannot be made (" + error.message() + ")");
  try_folder("--out", path_, path_);
}

void OutputFolder::claim(const std::string& lock_name, const std::string& busy,
                         std::chrono::milliseconds patience) {
  locks_.emplace_back().path = file(lock_name);
  lock(locks_.back(), busy, patience);
}

void OutputFolder::share(const std::string& work) {
  // One that begins with this one has the file for itself while it writes what the work is.
  constexpr std::chrono::milliseconds patience{500};
  locks_.emplace_back().path = file(whole_folder);
  locks_.back().work = work;
  lock(locks_.back(), another_writes, patience);
}

bool OutputFolder::Lock::take() const {
  const bool first = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (work.empty() || (!first && errno != EWOULDBLOCK)) return first;
  if (first) {
    // In the file of another user, which cannot be written, what it says lets in nobody else.
    [[maybe_unused]] const bool says =
        ::ftruncate(descriptor, 0) == 0 &&
        ::pwrite(descriptor, work.data(), work.size(), 0) == static_cast<ssize_t>(work.size());
    return ::flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  }
  if (::flock(descriptor, LOCK_SH | LOCK_NB) != 0) return false;
  std::string said(work.size() + 1, '\0');
  const ssize_t size = ::pread(descriptor, said.data(), said.size(), 0);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  errno = EWOULDBLOCK;
  return said == work;
}

void OutputFolder::lock(Lock& lock, const std::string& busy, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds again{50};
  const std::string& path = lock.path;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (bool locked = false; !locked;) {
    constexpr int flags = O_NOFOLLOW | O_CLOEXEC;
    lock.descriptor = ::open(path.c_str(), flags | O_CREAT | O_RDWR, 0666);
    // That of another user may still be read.
    if (lock.descriptor < 0 && errno == EACCES) {
      lock.descriptor = ::open(path.c_str(), flags | O_RDONLY);
    }
    if (lock.descriptor < 0) {
      reject_path("--out", path, std::string("cannot be locked (") + std::strerror(errno) + ")");
    }
    if (!lock.take()) {
      const bool taken = errno == EWOULDBLOCK;
      struct stat other = {};
      const bool stopping = lock.work.empty() && patience.count() > 0 &&
                            ::fstat(lock.descriptor, &other) == 0 && other.st_size > 0;
      ::close(std::exchange(lock.descriptor, -1));
      // A file system without locks keeps nobody out.
      if (!taken) {
        ::unlink(path.c_str());
        return;
      }
      if (stopping || std::chrono::steady_clock::now() < deadline) {
        if (stop_requested()) throw Stopped();
        std::this_thread::sleep_for(again);
        continue;
      }
      throw InvalidInput("--out: " + one_line(path_.string()) + ": " + busy +
                         " - wait for it, or choose another folder");
    }
    // Another run may have ended, and removed the file, since it was opened.
    struct stat ours = {}, there = {};
    locked = ::fstat(lock.descriptor, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
             ours.st_ino == there.st_ino;
    if (!locked) ::close(std::exchange(lock.descriptor, -1));
  }
  // A command that quits takes the file from those that share it: they keep nobody out any longer.
  lock.file.emplace(path);
  if (!lock.work.empty()) return;
  // A run that was killed may have left what it said.
  if (::ftruncate(lock.descriptor, 0) == 0) write_stop_to(lock.descriptor);
}

bool is_claimed(const std::string& folder, const std::string& lock_name) {
  const int lock = ::open((fs::path(folder) / lock_name).c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool claimed = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return claimed;
}

void OutputFolder::require_place_for(const std::vector<std::string>& names,
                                     const char* options) const {
  for (const std::string& name : names) {
    require_replaceable("--out", file(name));
    if (options != nullptr) require_nothing_at(file(name), options);
  }
}

OutputFolder::~OutputFolder() {
  for (const Lock& lock : locks_) {
    if (lock.descriptor < 0) continue;
    if (lock.work.empty()) forget_stop_file(lock.descriptor);
    // The last of those that share a file removes it: the lock of one alone becomes exclusive.
    if (lock.work.empty() || ::flock(lock.descriptor, LOCK_EX | LOCK_NB) == 0) {
      ::unlink(lock.path.c_str());
    }
    ::close(lock.descriptor);
  }
  if (first_made_.empty()) return;
  try {
    std::error_code error;
    // Removing stops by itself at the first folder that holds something.
    for (fs::path part = path_; fs::remove(part, error) && part != first_made_;) {
      part = part.parent_path();
    }
  } catch (const std::bad_alloc&) {
    // An empty folder stays.
  }
}

void require_nothing_at(const std::string& path, const std::string& options) {
  std::error_code none;
  const fs::file_status there = fs::status(path, none);
  if (!fs::exists(there) || fs::is_other(there)) return;  // nothing is lost on a pipe or device
  throw InvalidInput("--out: " + one_line(path) + ": is there already - write " + options +
                     ", or choose another place");
}

void require_out(bool overwrite, const std::optional<std::string>& out) {
  if (overwrite && !out) throw InvalidInput("--overwrite: needs --out, the place of the results");
}

std::string data_set_in(const std::string& folder) {
  std::error_code error;
  if (fs::exists(fs::path(folder) / "manifest.json", error)) return "manifest.json";
  for (const std::string& condition : names_in(folder)) {
    const fs::path inside = fs::path(folder) / condition;
    if (!condition.starts_with("condition_") || !fs::is_directory(inside, error)) continue;
    for (const std::string& shard : names_in(inside.string())) {
      if (shard.starts_with("shard_")) return condition + "/" + shard;
    }
  }
  return "";
}

void require_replaceable(const std::string& option, const std::string& path, bool folder) {
  struct stat there = {};
  if (::stat(path.c_str(), &there) != 0) {
    // Its temporary name is shorter, so that this would be found out at the end.
    if (errno == ENAMETOOLONG) reject_path(option, path, std::strerror(errno));
    return;
  }
  const char* const what = S_ISDIR(there.st_mode)    ? "folder"
                           : S_ISSOCK(there.st_mode) ? "socket"
                           : S_ISBLK(there.st_mode)  ? "disk"
                           : S_ISREG(there.st_mode)  ? "file"
                                                     : "pipe or a device";
  if (folder && !S_ISDIR(there.st_mode)) {
    reject_path(option, path, std::string("is a ") + what + ", not a folder");
  }
  if (folder || S_ISREG(there.st_mode)) return;
  if (S_ISDIR(there.st_mode) || S_ISSOCK(there.st_mode) || S_ISBLK(there.st_mode)) {
    reject_path(option, path, std::string("is a ") + what + ", not a file");
  }
  if (::access(path.c_str(), W_OK) != 0) {
    reject_path(option, path, std::string("cannot be written (") + std::strerror(errno) + ")");
  }
}

void require_writable(const std::string& option, const std::string& path) {
  if (path.empty())
    throw InvalidInput(option + ": is empty - give a file, or - for standard output");
  std::error_code error;
  require_replaceable(option, path);
  if (fs::is_other(fs::status(path, error))) return;  // a pipe or device, which is written to
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    reject_path(option, path, "there is no folder " + one_line(folder.string()));
  }
  try_folder(option, path, folder.empty() ? fs::path(".") : folder);
}

void require_no_input(const std::string& option, const std::string& path,
                      const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code none;
    if (!fs::equivalent(path, input, none)) continue;
    throw InvalidInput(option + ": would write over " + one_line(path) +
                       ", which is read here - choose another place");
  }
}

void require_different_files(
    const std::vector<std::pair<std::string, std::optional<std::string>>>& paths) {
  std::map<fs::path, std::string> option_of;
  for (const auto& [option, path] : paths) {
    if (!path || *path == "-") continue;
    std::error_code none;
    const auto [other, is_first] =
        option_of.try_emplace(fs::weakly_canonical(fs::absolute(*path, none), none), option);
    // What is no file, as /dev/null, may take several.
    if (is_first || fs::is_other(fs::status(*path, none))) continue;
    throw InvalidInput(option + ": would write over " + one_line(*path) + ", the file of " +
                       other->second + " - choose another place");
  }
}

void require_json_writable(const std::string& path, const std::vector<std::string>& inputs) {
  require_no_input("--json", path, inputs);
  require_writable("--json", path);
}

void write_files(const std::vector<TextFile>& files, bool quiet) {
  std::string names;
  for (const auto& [path, text] : files) {
    write_atomically(path, text);
    names += (names.empty() ? "" : ", ") + path;
  }
  if (!files.empty() && !quiet) std::cerr << "headlab: wrote " << names << "\n";
}

}  // namespace headlab::tools
