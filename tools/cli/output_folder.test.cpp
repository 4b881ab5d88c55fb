// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_folder.h"

#include <chrono>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/testing/folder_test.h"

namespace headlab::tools {
namespace {

using std::chrono::milliseconds;

using OutputFolders = FolderTest;

TEST_F(OutputFolders, AreWaitedForWhileAnotherRunSaysThatItIsStopping) {
  const std::string path = at("lock");
  const int other = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  OutputFolder folder(folder_.string());
  EXPECT_THROW(folder.claim("lock", "busy", milliseconds(1)), InvalidInput);
  constexpr std::string_view stopping = "stopping\n";
  ASSERT_EQ(::write(other, stopping.data(), stopping.size()), 9);
  EXPECT_THROW(folder.claim("lock", "busy"), InvalidInput);  // resumes nothing
  const std::jthread ending([&] {
    std::this_thread::sleep_for(milliseconds(300));
    ::close(other);
  });
  folder.claim("lock", "busy", milliseconds(1));
  EXPECT_TRUE(is_claimed(folder_.string(), "lock"));
  EXPECT_EQ(std::filesystem::file_size(path), 0u);  // what the other said is no more
}

TEST_F(OutputFolders, AreSharedUntilTheLastOfThoseIsGone) {
  const std::string path = at(OutputFolder::whole_folder);
  std::optional<OutputFolder> first(folder_.string()), second(folder_.string());
  OutputFolder other(folder_.string());
  first->share("work");
  second->share("work");
  EXPECT_THROW(OutputFolder(folder_.string()).share("other"), InvalidInput);
  EXPECT_THROW(other.claim(), InvalidInput);
  first.reset();
  EXPECT_THROW(other.claim(), InvalidInput);
  second.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
  other.claim();
  EXPECT_THROW(OutputFolder(folder_.string()).share("work"), InvalidInput);
}

TEST_F(OutputFolders, AreClosedWhereTheyCannotBeLocked) {
  std::filesystem::create_directory(folder_ / "a");
  std::filesystem::create_symlink(at("other"), folder_ / "b");
  OutputFolder folder(folder_.string());
  for (const char* lock : {"a", "b"}) EXPECT_THROW(folder.claim(lock), InvalidInput) << lock;
  EXPECT_FALSE(std::filesystem::exists(at("other")));
}

}  // namespace
}  // namespace headlab::tools
