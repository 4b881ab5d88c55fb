// SPDX-License-Identifier: Apache-2.0
#include "engine/files/foreign_files.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace headlab {
namespace {

const std::string foreign_file = "a file of others";
constexpr std::uint64_t greeting = 0x68656164;

/// A number as printf of the shell writes its eight bytes.
std::string in_octal(std::uint64_t number) {
  std::string text;
  for (int byte = 0; byte < 8; ++byte, number >>= 8) {
    const std::uint64_t bits = number & 0xff;
    text += '\\';
    for (const int shift : {6, 3, 0}) text += static_cast<char>('0' + ((bits >> shift) & 7));
  }
  return text;
}

/// A process that takes one file and answers, without looking at it, and what it does then.
ForeignFiles answering(std::uint64_t kind, const std::string& text, std::uint64_t image,
                       const std::string& then = "cat >&2") {
  return {{"sh", "-c",
           "printf '" + in_octal(greeting) + "'; head -c " +
               std::to_string(sizeof(std::uint64_t) + foreign_file.size()) + " >&2; printf '" +
               in_octal(kind) + in_octal(text.size()) + in_octal(image) + text + "'; " + then}};
}

class ForeignFilesTest : public testing::Test {
 protected:
  void TearDown() override { set_foreign_files({}); }

  /// What reading the file says.
  static std::string refusal() {
    try {
      trusted_netcdf("a.nc", foreign_file);
      return "none";
    } catch (const std::exception& error) {
      return error.what();
    }
  }
};

TEST_F(ForeignFilesTest, LackOfMemoryIsNoDamage) {
  constexpr std::uint64_t no_memory = 4;
  // At the second file it ends by itself.
  set_foreign_files(answering(no_memory, "needs much", 0, "head -c 8 >&2; exit 1"));
  EXPECT_EQ(refusal(), "a.nc: needs much");
  EXPECT_EQ(refusal(), "a.nc: the process that reads NetCDF files of others has no memory");
}

TEST_F(ForeignFilesTest, ReadsAnotherFileAfterACopyThatNeedsTooMuchMemory) {
  constexpr std::uint64_t copied = 0, damaged = 2;
  // What follows the answer must not be taken for that to the next file.
  set_foreign_files(answering(copied, std::string(64, 'x'), std::uint64_t{1} << 60));
  EXPECT_NE(refusal().find("of memory for a copy of it"), std::string::npos);
  set_foreign_files(answering(damaged, "some sum is wrong", 0));
  EXPECT_EQ(refusal(), "is damaged: some sum is wrong");
}

}  // namespace
}  // namespace headlab
