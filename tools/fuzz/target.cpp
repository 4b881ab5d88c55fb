// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/target.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <stdlib.h>

#include "engine/files/document.h"
#include "engine/files/error.h"

namespace headlab::fuzz {
namespace {

/// What a reader may take, for an input of some kilobytes.
constexpr const char* memory_limit = "16777216";

/// A folder that goes when the program ends.
class ScratchFolder {
 public:
  ScratchFolder() { require(::mkdtemp(path_.data()) != nullptr, "no folder in TMPDIR"); }
  ~ScratchFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "headlab-fuzz-XXXXXX").string();
};

}  // namespace

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

std::optional<std::string> refusal_of(const Target& target, const std::string& bytes) {
  static const int limited = ::setenv("HEADLAB_MEMORY_LIMIT", memory_limit, 1);
  require(limited == 0, "HEADLAB_MEMORY_LIMIT cannot be set");
  try {
    target.read(bytes);
    return std::nullopt;
  } catch (const InvalidInput& refusal) {
    std::string line = refusal.what();
    require(!line.empty(), "a message without words");
    require(one_line(line, std::numeric_limits<std::size_t>::max() - 1) == line,
            "a message that is not one line of printable text");
    return line;
  }
}

std::string file_of(const std::string& bytes, std::size_t which) {
  static ScratchFolder folder;
  const std::string path = folder.path() + "/" + std::to_string(which);
  // HDF5 would take what a file that it could not close had for that of the next.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  require(static_cast<bool>(file.flush()), "no room for an input in TMPDIR");
  return path;
}

}  // namespace headlab::fuzz
