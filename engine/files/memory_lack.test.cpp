// SPDX-License-Identifier: Apache-2.0
#include "engine/files/memory_lack.h"

#include <new>
#include <sstream>
#include <streambuf>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/atomic_file.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

/// A text whose reading does what operator new does where memory lacks.
class LongText : public std::streambuf {
 protected:
  int_type underflow() override {
    std::get_new_handler()();
    return traits_type::eof();
  }
};

using MemoryLack = FolderTest;

TEST_F(MemoryLack, IsNotTakenForTheEndOfAText) {
  // Noted for good, so that it is seen in a process of its own.
  const auto write_after_it = [&] {
    note_lack_of_memory();
    write_atomically(at("before"), "text");
    LongText text;
    std::istream in(&text);
    std::string line;
    std::getline(in, line);  // says nothing
    try {
      write_atomically(at("after"), "text");
    } catch (const std::bad_alloc&) {
      std::exit(42);
    }
    std::exit(0);
  };
  EXPECT_EXIT(write_after_it(), testing::ExitedWithCode(42), "");
  EXPECT_TRUE(std::filesystem::exists(at("before")));
  EXPECT_FALSE(std::filesystem::exists(at("after")));
}

}  // namespace
}  // namespace headlab
