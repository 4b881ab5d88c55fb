// SPDX-License-Identifier: Apache-2.0
/// \file Tests that write files.
#pragma once

#include <filesystem>
#include <stdlib.h>
#include <string>

#include <gtest/gtest.h>

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

  std::filesystem::path folder_;
};

}  // namespace headlab
