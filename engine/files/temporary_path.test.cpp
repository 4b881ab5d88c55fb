// SPDX-License-Identifier: Apache-2.0
#include "engine/files/temporary_path.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/atomic_file.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

class TemporaryPaths : public FolderTest {
 protected:
  /// Lets `work` be done by a process that ends at once.
  template <class Work>
  static void in_a_process_that_dies(const Work& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      work();
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      all.insert(entry.path().filename().string());
    }
    return all;
  }
};

TEST_F(TemporaryPaths, AreClearedOnceTheirProcessHasEnded) {
  in_a_process_that_dies([&] {
    std::ofstream(temporary_name(at("file"))) << "half";
    const std::string shard = temporary_name(at("shard"));
    fs::create_directory(shard);
    std::ofstream(shard + "/X.npy") << "half";
    // A copy of a checkpoint has folders. What a link leads to stays.
    const std::string deep = temporary_name(at("deep"));
    fs::create_directories(deep + "/inside");
    fs::create_symlink("../../precious", deep + "/inside/link");
    fs::create_symlink("precious", temporary_name(at("link")));
  });
  std::ofstream(at("precious")) << "precious";
  const std::string alive = temporary_name(at("alive"));
  std::ofstream(alive) << "half";
  for (const char* other : {"results.nc.tmp-12345", "x.tmp-a-1-2-3-0123456789abcdeg", "y.tmp-",
                            "z.tmp-1-2-3-0123456789abcdef"}) {
    std::ofstream(at(other)) << "of the user";
  }
  EXPECT_EQ(names().size(), 10u);
  EXPECT_TRUE(clear_temporaries(folder_.string()).empty());
  const std::set<std::string> left = names();
  EXPECT_EQ(left.size(), 7u);
  EXPECT_TRUE(left.contains("precious"));
  EXPECT_TRUE(left.contains(fs::path(alive).filename().string()));
  EXPECT_TRUE(left.contains("results.nc.tmp-12345"));
  for (const std::string& name : left) {
    EXPECT_FALSE(name.starts_with("file.") || name.starts_with("shard.") ||
                 name.starts_with("deep."))
        << name;
  }
}

TEST_F(TemporaryPaths, OfOtherMachinesAreNamedOnceTheyAreOld) {
  const std::string fresh = at("a.tmp-elsewhere-1-2-3-0123456789abcdef");
  const std::string old = at("b.tmp-elsewhere-1-2-3-0123456789abcdef");
  std::ofstream(fresh) << "half";
  std::ofstream(old) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(clear_temporaries(folder_.string()), std::vector<std::string>{old});
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(TemporaryPaths, HaveRoomForTheirEnd) {
  const std::string name = temporary_name(at(std::string(255, 'x')));
  EXPECT_EQ(fs::path(name).filename().string().size(), 255u);
  EXPECT_NE(name, temporary_name(at(std::string(255, 'x'))));
  std::ofstream(at(std::string(255, 'x'))) << "old";
  write_atomically(at(std::string(255, 'x')), "new");
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(TemporaryPaths, OfAFileHaveItsPermissions) {
  std::ofstream(at("private")) << "old";
  fs::permissions(at("private"), fs::perms::owner_read | fs::perms::owner_write);
  write_atomically(at("private"), "new");
  EXPECT_EQ(fs::status(at("private")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(names(), std::set<std::string>{"private"});
}

}  // namespace
}  // namespace headlab
