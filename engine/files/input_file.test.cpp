// SPDX-License-Identifier: Apache-2.0
#include "engine/files/input_file.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

using InputFiles = FolderTest;

TEST_F(InputFiles, AreNotWhatStandsForAFile) {
  using namespace std::string_literals;
  const std::string compressed = "file: is compressed - unpack it first";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
       "file: is a pointer of Git LFS in place of the file - fetch that with git lfs pull"},
      {"\x1f\x8b\x08\0more"s, compressed},
      {"BZh91AY&SY and more", compressed},
      {"\xfd\x37zXZ\0more"s, compressed},
      {"\x28\xb5\x2f\xfd more", compressed}};
  for (const auto& [bytes, line] : cases) {
    write("file", bytes);
    EXPECT_EQ(refusal_here([&] { read_file(at("file"), 1000); }), line);
  }
  for (const std::string& bytes : {"version https://example.org\n"s, "BZh91"s, ""s, "\x1f\x8b"s}) {
    write("file", bytes);
    EXPECT_EQ(read_file(at("file"), 1000), bytes);
  }
}

}  // namespace
}  // namespace headlab
