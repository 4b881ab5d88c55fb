// SPDX-License-Identifier: Apache-2.0
#include "engine/files/scratch_path.h"

#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace headlab {
namespace {

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
    for (const std::string& path : registry().paths) {
      std::error_code none;
      std::filesystem::remove_all(path, none);
    }
  }
}

}  // namespace headlab
