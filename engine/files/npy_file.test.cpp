// SPDX-License-Identifier: Apache-2.0
// What tables do not have: more than two axes, and writing. Damaged headers: table_file.test.cpp.
#include "engine/files/npy_file.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"

namespace headlab {
namespace {

std::string npy_refusal(const std::string& bytes, std::size_t least = 3, std::size_t most = 3) {
  return refusal_line([&] { parse_npy_array(bytes, "t", least, most); });
}

TEST(NpyFile, ComesBackAsItWasWritten) {
  const std::vector<double> numbers = {1, 0.1, -3, 4, 5e-300, 6, 7, 8, 9, 10, 11, 12};
  const std::string bytes = npy_bytes({2, 3, 2}, numbers);
  EXPECT_EQ((bytes.size() - numbers.size() * 8) % 64, 0u);
  EXPECT_EQ(bytes[bytes.size() - numbers.size() * 8 - 1], '\n');
  const NpyArray array = parse_npy_array(bytes, "t", 3, 3);
  EXPECT_EQ(array.shape, (std::vector<std::uint64_t>{2, 3, 2}));
  EXPECT_EQ(array.values, numbers);
  EXPECT_TRUE(is_npy(bytes));
  EXPECT_FALSE(is_npy("\x89HDF"));
}

TEST(NpyFile, FortranOrderIsTurnedIntoCOrder) {
  std::vector<double> by_rows, by_columns(24);
  for (int i = 0; i < 24; ++i) by_rows.push_back(i);
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        by_columns[h + 2 * (i + 3 * j)] = by_rows[(h * 3 + i) * 4 + j];
      }
    }
  }
  std::string bytes = npy_bytes({2, 3, 4}, by_columns);
  EXPECT_NE(parse_npy_array(bytes, "t", 3, 3).values, by_rows);
  bytes.replace(bytes.find("False,"), 6, "True, ");
  EXPECT_EQ(parse_npy_array(bytes, "t", 3, 3).values, by_rows);
}

TEST(NpyFile, RefusesOtherShapes) {
  const std::vector<double> six(6, 1.0);
  EXPECT_EQ(npy_refusal(npy_bytes({1, 2, 3}, six)), "accepted");
  EXPECT_EQ(npy_refusal(npy_bytes({2, 3}, six)), "t: has 2 axes (allowed: 3)");
  EXPECT_EQ(npy_refusal(npy_bytes({1, 1, 2, 3}, six)), "t: has 4 axes (allowed: 3)");
  EXPECT_EQ(npy_refusal(npy_bytes({1, 2, 3}, six), 1, 2), "t: has 3 axes (allowed: 1 or 2)");
  EXPECT_EQ(npy_refusal(npy_bytes({3, 0, 2}, {})), "t: has no numbers: its shape is 3 x 0 x 2");
  std::string huge = npy_bytes({1, 2, 3}, six);
  huge.replace(huge.find("(1, 2, 3, ), }") + 1, 40, "4294967296, 4294967296, 4294967296), }  ");
  EXPECT_EQ(npy_refusal(huge),
            "t: has 48 bytes of numbers, its shape 4294967296 x 4294967296 x 4294967296 needs "
            "another length");
  std::vector<double> poisoned = six;
  poisoned[4] = 0.0 / 0.0;
  EXPECT_EQ(npy_refusal(npy_bytes({1, 2, 3}, poisoned)), "t: element [0][1][1] is not finite");
}

}  // namespace
}  // namespace headlab
