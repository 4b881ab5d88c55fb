// SPDX-License-Identifier: Apache-2.0
/// \file Tests that write files.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <string>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"

namespace headlab {

/// A test with an empty folder of its own, which goes away again.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "headlab-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  /// The line with which `act` is refused, without the path of the folder.
  template <class Act>
  std::string refusal_here(const Act& act) const {
    std::string line = refusal_line(act);
    const std::string folder = folder_.string() + "/";
    for (std::size_t i = 0; (i = line.find(folder)) != std::string::npos;)
      line.erase(i, folder.size());
    return line;
  }

  std::filesystem::path folder_;
};

}  // namespace headlab
