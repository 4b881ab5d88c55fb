// SPDX-License-Identifier: Apache-2.0
#include "engine/files/sha256.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

std::string sum_of(const std::string& text, std::size_t piece) {
  Sha256 sum;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string part = text.substr(at, piece);
    sum.add(std::as_bytes(std::span(part)));
  }
  return sum.digest();
}

// The examples of FIPS 180-2, appendix B.
constexpr const char* of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* of_a_million_a =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, GivesTheKnownAnswers) {
  EXPECT_EQ(sum_of("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc", 1), of_abc);
  EXPECT_EQ(sum_of(std::string(1000000, 'a'), 4097), of_a_million_a);
  EXPECT_NE(sum_of("abd", 3), of_abc);
}

class Sha256Files : public FolderTest {};

TEST_F(Sha256Files, AreRead) {
  const std::string path = at("file");
  EXPECT_THROW(sha256_of_file(path), RunFailed);
  std::ofstream(path) << "abc";
  EXPECT_EQ(sha256_of_file(path), of_abc);
  std::ofstream(path) << std::string(1000000, 'a');
  EXPECT_EQ(sha256_of_file(path), of_a_million_a);
}

}  // namespace
}  // namespace headlab
