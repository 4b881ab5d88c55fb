// SPDX-License-Identifier: Apache-2.0
#include "engine/files/folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/document.h"
#include "engine/files/error.h"

namespace headlab {
namespace {

struct Close {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, Close>;

/// The next name, with errno 0 at the end and the error where there is none.
const char* next_name(DIR* folder) {
  for (;;) {
    errno = 0;
    const dirent* const next = ::readdir(folder);
    if (next == nullptr) return nullptr;
    const char* const name = static_cast<const char*>(next->d_name);
    if (std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0) return name;
  }
}

/// Allocates nothing of its own: it is called where memory has run out, and by destructors.
void remove_in(int parent, const char* name) noexcept {
  if (::unlinkat(parent, name, 0) == 0) return;
  const int opened = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return;
  if (const Folder folder(::fdopendir(opened)); folder != nullptr) {
    while (const char* const inside = next_name(folder.get())) remove_in(opened, inside);
  } else {
    ::close(opened);
  }
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
  error.clear();
  const Folder opened(::opendir(folder.c_str()));
  std::vector<std::string> names;
  if (opened != nullptr) {
    while (const char* const name = next_name(opened.get())) names.emplace_back(name);
  }
  if (errno != 0) {
    error.assign(errno, std::generic_category());
    return {};
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    throw RunFailed(one_line(folder) + ": cannot be read (" + error.message() + ")");
  }
  return names;
}

void remove_made(const std::string& path) noexcept {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) remove_in(AT_FDCWD, path.c_str());
}

}  // namespace headlab
