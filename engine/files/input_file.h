// SPDX-License-Identifier: Apache-2.0
/// \file The door through which files are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headlab {

/// A regular file, open for reading. What else may stand at a path, a pipe, a device or a folder,
/// could keep the program waiting or never end, and is refused.
class InputFile {
 public:
  /// Throws InvalidInput with one line that begins with the path.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }
  /// Reads on: at most `size` bytes, fewer at the end of the file alone. Throws RunFailed where the
  /// system cannot read.
  std::size_t read(char* to, std::size_t size);

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

/// The content of a regular file of at most `max_bytes`, neither compressed nor a pointer of Git
/// LFS, which has to fit into the memory that is available. Throws InvalidInput that begins with
/// the path, and RunFailed.
std::string read_file(const std::string& path, std::uint64_t max_bytes);

/// Rejects what stands for a file that Git LFS has not fetched yet, by its first bytes.
void reject_pointer(const std::string& source, std::string_view start);

/// A regular file whose parts are read in any order. Throws InvalidInput that begins with the path.
std::unique_ptr<std::istream> open_regular(const std::string& path);

/// `count` bytes from byte `first` on. Throws RunFailed, naming `source`, where the system cannot
/// read, and InvalidInput where there are fewer.
std::string read_bytes(std::istream& bytes, const std::string& source, std::uint64_t first,
                       std::uint64_t count);

/// The same, put where they are wanted.
void read_bytes(std::istream& bytes, const std::string& source, std::uint64_t first,
                std::span<char> to);

/// The first bytes of a file, at most `count`; none where no regular file is. Throws as InputFile
/// does.
std::string first_bytes(const std::string& path, std::size_t count);

}  // namespace headlab
