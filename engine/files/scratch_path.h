// SPDX-License-Identifier: Apache-2.0
/// \file Files that must not outlive the process, however it ends.
#pragma once

#include <string>

namespace headlab {

/// Names a file or folder to remove where the process quits before this object is gone. It neither
/// makes nor removes it itself.
class ScratchPath {
 public:
  explicit ScratchPath(std::string path);
  ~ScratchPath();
  ScratchPath(const ScratchPath&) = delete;
  ScratchPath& operator=(const ScratchPath&) = delete;

 private:
  std::string path_;
};

/// Removes what every ScratchPath names and keeps further ones from being made: threads that try
/// wait for ever. To be followed by _exit().
void remove_scratch_paths();

}  // namespace headlab
