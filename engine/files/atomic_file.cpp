// SPDX-License-Identifier: Apache-2.0
#include "engine/files/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/files/error.h"
#include "engine/files/folder.h"
#include "engine/files/memory_lack.h"
#include "engine/files/temporary_path.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

/// A file descriptor, and the name to remove if the work on it fails.
class OutputFile {
 public:
  OutputFile(std::string target, std::string name, int flags)
      : target_(std::move(target)), name_(std::move(name)), direct_(name_ == target_) {
    if (!direct_) scratch_.emplace(name_);
    descriptor_ = ::open(name_.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(errno);
    open_ = true;
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (open_ && !direct_) ::unlink(name_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        fail(errno);
      }
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void take_permissions(mode_t mode) {
    // Best effort: some file systems have none.
    (void)::fchmod(descriptor_, mode & 07777);
  }

  void sync() { flush_to_disk(descriptor_, target_); }

  /// Reports what a network file system keeps back until here.
  void close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0 && errno != EINTR) fail(errno);
  }

  void rename() {
    require_no_lack_of_memory();
    if (std::rename(name_.c_str(), target_.c_str()) != 0) fail(errno);
    open_ = false;
  }

 private:
  [[noreturn]] void fail(int error) const { throw cannot_be_written(target_, error); }

  std::string target_;
  std::string name_;
  bool direct_;
  bool open_ = false;  ///< the file exists under name_ and is ours to remove
  int descriptor_ = -1;
  std::optional<ScratchPath> scratch_;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::string> paths;
};

/// Never destroyed: a signal may come while the program ends.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

}  // namespace

void make_folder(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    throw RunFailed(path +
                    ": is a link, through which no data set is written - put a folder there");
  }
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw cannot_be_written(path, error.value());
}

void move_made(const std::string& path, const std::string& target) {
  require_no_lack_of_memory();
  struct stat from = {}, to = {};
  const auto is_folder = [](const std::string& at, struct stat& status) {
    return ::lstat(at.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  };
  if (is_folder(path, from) && is_folder(target, to)) {
    for (const std::string& name : names_in(path)) {
      struct stat file = {};
      const std::string made = path + "/" + name;
      if (::lstat(made.c_str(), &file) == 0 && S_ISREG(file.st_mode)) {
        move_made(made, target + "/" + name);
      }
    }
    // Whoever made it removes it where this fails.
    if (::rmdir(path.c_str()) != 0) throw cannot_be_written(target, errno);
    return;
  }
  if (std::rename(path.c_str(), target.c_str()) != 0) throw cannot_be_written(target, errno);
}

RunFailed cannot_be_written(const std::string& path, int error) {
  const char* const advice = error == ENOSPC || error == EDQUOT || error == EFBIG
                                 ? " - free some space, or choose another place"
                             : error == EACCES || error == EPERM || error == EROFS
                                 ? " - choose a place you may write to"
                                 : "";
  return RunFailed(path + ": cannot be written (" + std::strerror(error) + ")" + advice);
}

void flush_to_disk(int descriptor, const std::string& path) {
  while (::fsync(descriptor) != 0) {
    if (errno == EINTR) continue;
    // Some file systems cannot flush one file; the rename is atomic there all the same.
    if (errno == EINVAL || errno == EROFS || errno == ENOTSUP) return;
    throw cannot_be_written(path, errno);
  }
}

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

void flush_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void write_atomically(const std::string& path, std::string_view bytes) {
  write_atomically(path, [&](const TextSink& out) { out(bytes); });
}

void write_atomically(const std::string& path,
                      const std::function<void(const TextSink&)>& produce) {
  struct stat status = {};
  const bool replaces = ::stat(path.c_str(), &status) == 0;
  if (replaces && !S_ISREG(status.st_mode)) {
    OutputFile file(path, path, 0);
    produce([&](std::string_view bytes) { file.write(bytes); });
    file.close();
    return;
  }
  clear_temporaries(folder_of(path));
  OutputFile file(path, temporary_name(path), O_CREAT | O_EXCL | O_NOFOLLOW);
  if (replaces) file.take_permissions(status.st_mode);
  produce([&](std::string_view bytes) { file.write(bytes); });
  file.sync();
  file.close();
  file.rename();
  flush_folder_of(path);
}

ScratchPath::ScratchPath(std::string path) : path_(std::move(path)) {
  const std::lock_guard lock(registry().mutex);
  registry().paths.push_back(path_);
}

ScratchPath::~ScratchPath() {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().paths, path_);
}

void remove_scratch_paths() {
  registry().mutex.lock();
  // Twice: a thread may be making a file in a folder of which this lists the files.
  for (int turn = 0; turn < 2; ++turn) {
    for (const std::string& path : registry().paths) remove_made(path);
  }
}

}  // namespace headlab
