// SPDX-License-Identifier: Apache-2.0
#include "engine/files/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/error.h"
#include "engine/files/scratch_path.h"

namespace headlab {
namespace {

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

  void sync() { flush_to_disk(descriptor_, target_); }

  /// Reports what a network file system keeps back until here.
  void close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0 && errno != EINTR) fail(errno);
  }

  void rename() {
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

}  // namespace

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

void flush_folder_of(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

std::string temporary_name(const std::string& path, const std::string& process) {
  return path + ".tmp-" + process;
}

void write_atomically(const std::string& path, std::string_view bytes) {
  write_atomically(path, [&](const TextSink& out) { out(bytes); });
}

void write_atomically(const std::string& path,
                      const std::function<void(const TextSink&)>& produce) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    OutputFile file(path, path, 0);
    produce([&](std::string_view bytes) { file.write(bytes); });
    file.close();
    return;
  }
  OutputFile file(path, temporary_name(path, std::to_string(::getpid())), O_CREAT | O_TRUNC);
  produce([&](std::string_view bytes) { file.write(bytes); });
  file.sync();
  file.close();
  file.rename();
  flush_folder_of(path);
}

}  // namespace headlab
