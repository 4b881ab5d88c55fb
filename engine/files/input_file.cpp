// SPDX-License-Identifier: Apache-2.0
#include "engine/files/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "engine/files/error.h"

namespace headlab {
namespace {

void reject_compressed(const std::string& path, std::string_view start) {
  using namespace std::string_view_literals;
  for (const auto& gzip_bzip2_xz_zstd :
       {"\x1f\x8b\x08"sv, "BZh91AY&SY"sv, "\xfd\x37zXZ\0"sv, "\x28\xb5\x2f\xfd"sv}) {
    if (start.starts_with(gzip_bzip2_xz_zstd)) {
      reject({path}, "", "is compressed - unpack it first");
    }
  }
}

}  // namespace

void reject_pointer(const std::string& source, std::string_view start) {
  if (!start.starts_with("version https://git-lfs.github.com/spec/")) return;
  reject({source}, "",
         "is a pointer of Git LFS in place of the file - fetch that with git lfs pull");
}

InputFile::InputFile(const std::string& path)
    // A pipe that nobody writes to is open at once.
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  struct stat status = {};
  if (descriptor_ < 0) {
    const int error = errno;
    const bool known = ::stat(path.c_str(), &status) == 0;
    if (known && S_ISSOCK(status.st_mode)) reject({path}, "", "is a socket, needs a file");
    errno = error;
    reject({path}, "", std::string("cannot be opened: ") + std::strerror(errno));
  }
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    reject({path}, "",
           S_ISDIR(status.st_mode) ? "is a directory, needs a file"
                                   : "is a pipe or a device, needs a file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

std::size_t InputFile::read(char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(descriptor_, to + done, size - done);
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      throw RunFailed(one_line(path_) + ": cannot be read (" + std::strerror(errno) + ")");
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::string read_file(const std::string& path, std::uint64_t max_bytes) {
  InputFile file(path);
  if (file.size() > max_bytes) {
    reject({path}, "",
           "is too long (allowed: at most " + std::to_string(max_bytes >> 20) + " MiB)");
  }
  if (file.size() > available_bytes()) {
    reject({path}, "",
           "needs " + format_bytes(file.size()) + " of memory, as it is read whole, " +
               available_text());
  }
  std::string content(file.size(), '\0');
  content.resize(file.read(content.data(), content.size()));
  reject_pointer(path, content);
  reject_compressed(path, content);
  return content;
}

std::unique_ptr<std::istream> open_regular(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    reject({path}, "", "is not a regular file");
  }
  errno = 0;
  auto file = std::make_unique<std::ifstream>();
  // Unbuffered: callers seek to each part that they read, and a seek empties the buffer.
  file->rdbuf()->pubsetbuf(nullptr, 0);
  file->open(path, std::ios::binary);
  if (!*file) reject({path}, "", std::string("cannot be opened: ") + std::strerror(errno));
  return file;
}

std::string read_bytes(std::istream& bytes, const std::string& source, std::uint64_t first,
                       std::uint64_t count) {
  std::string part(count, '\0');
  read_bytes(bytes, source, first, part);
  return part;
}

void read_bytes(std::istream& bytes, const std::string& source, std::uint64_t first,
                std::span<char> to) {
  errno = 0;
  bytes.clear();
  bytes.seekg(static_cast<std::streamoff>(first));
  bytes.read(to.data(), static_cast<std::streamsize>(to.size()));
  if (bytes.bad()) {
    throw RunFailed(one_line(source) + ": cannot be read (" + std::strerror(errno) + ")");
  }
  if (!bytes) reject({source}, "", "became shorter while it was read");
}

std::string first_bytes(const std::string& path, std::size_t count) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  InputFile file(path);
  std::string content(std::min<std::uint64_t>(count, file.size()), '\0');
  content.resize(file.read(content.data(), content.size()));
  return content;
}

}  // namespace headlab
