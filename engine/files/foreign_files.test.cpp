// SPDX-License-Identifier: Apache-2.0
#include "engine/files/foreign_files.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace headlab {
namespace {

const std::string foreign_file = "a file of others";

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

/// A process that takes one file and answers, without looking at it.
ForeignFiles answering(std::uint64_t kind, const std::string& text, std::uint64_t image) {
  constexpr std::uint64_t greeting = 0x68656164;
  return {{"sh", "-c",
           "printf '" + in_octal(greeting) + "'; head -c " +
               std::to_string(sizeof(std::uint64_t) + foreign_file.size()) + " >&2; printf '" +
               in_octal(kind) + in_octal(text.size()) + in_octal(image) + text + "'; cat >&2"}};
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
