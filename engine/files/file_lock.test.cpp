// SPDX-License-Identifier: Apache-2.0
#include "engine/files/file_lock.h"

#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

class FileLock : public FolderTest {
 protected:
  int open() const { return ::open(at("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
};

TEST_F(FileLock, IsWaitedForUntilItIsFree) {
  const int holder = open();
  const int waiter = open();
  ASSERT_TRUE(wait_for_lock(holder, {}));
  int asked = 0;
  EXPECT_TRUE(wait_for_lock(waiter, [&] {
    if (++asked == 3) ::close(holder);
    return false;
  }));
  EXPECT_EQ(asked, 3);
  ::close(waiter);
}

TEST_F(FileLock, IsWaitedForNoLongerThanUntilTheStop) {
  const int holder = open(), waiter = open();
  ASSERT_TRUE(wait_for_lock(holder, {}));
  int asked = 0;
  EXPECT_FALSE(wait_for_lock(waiter, [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
  ::close(holder);
  // A command that is stopped keeps what it has.
  EXPECT_TRUE(wait_for_lock(waiter, [] { return true; }));
  ::close(waiter);
}

}  // namespace
}  // namespace headlab
