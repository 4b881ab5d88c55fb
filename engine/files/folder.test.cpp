// SPDX-License-Identifier: Apache-2.0
#include "engine/files/folder.h"

#include <filesystem>
#include <sys/stat.h>
#include <system_error>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Folders = FolderTest;

TEST_F(Folders, HoldNamesInOrder) {
  for (const char* name : {"b", "a", ".c", "A"}) write(name, "");
  fs::create_directory(at("d"));
  fs::create_symlink("nowhere", at("e"));
  EXPECT_EQ(names_in(folder_.string()), (std::vector<std::string>{".c", "A", "a", "b", "d", "e"}));
  EXPECT_TRUE(names_in(at("d")).empty());
}

TEST_F(Folders, ThatAreNotThereHoldNothing) {
  write("file", "");
  std::error_code error;
  EXPECT_TRUE(names_in(at("none"), error).empty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_TRUE(names_in(at("none")).empty());
  EXPECT_TRUE(names_in(at("file")).empty());
  EXPECT_TRUE(names_in("", error).empty());
  EXPECT_TRUE(error);
  EXPECT_TRUE(names_in(folder_.string(), error).size() == 1 && !error);
}

TEST_F(Folders, ThatCannotBeReadAreRefused) {
  fs::create_directory_symlink("loop", at("loop"));
  EXPECT_TRUE(refusal_line<RunFailed>([&] {
                names_in(at("loop"));
              }).ends_with("/loop: cannot be read (Too many levels of symbolic links)"));
}

TEST_F(Folders, AreRemovedWithWhatIsInThemAndNothingElse) {
  write("precious", "precious");
  fs::create_directories(at("mine"));
  write("mine/precious", "precious");
  fs::create_directories(at("made/deep/deeper"));
  write("made/deep/file", "");
  ::mkfifo(at("made/pipe").c_str(), 0600);
  fs::create_directory_symlink("../../mine", at("made/deep/link"));
  remove_made(at("made"));
  EXPECT_EQ(names_in(folder_.string()), (std::vector<std::string>{"mine", "precious"}));
  EXPECT_EQ(names_in(at("mine")), (std::vector<std::string>{"precious"}));
  fs::create_directory_symlink("mine", at("link"));
  for (const char* left : {"link", "none"}) remove_made(at(left));
  EXPECT_EQ(names_in(folder_.string()), (std::vector<std::string>{"link", "mine", "precious"}));
  remove_made(at("precious"));
  EXPECT_FALSE(fs::exists(at("precious")));
}

}  // namespace
}  // namespace headlab
