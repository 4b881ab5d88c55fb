// SPDX-License-Identifier: Apache-2.0
#include "engine/files/table_file.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/input_file.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const DataTable& table) {
  Rows rows(table.rows);
  for (std::size_t i = 0; i < table.rows; ++i) {
    for (std::size_t j = 0; j < table.columns; ++j) rows[i].push_back(table.at(i, j));
  }
  return rows;
}

std::string csv_refusal(const std::string& text) {
  return refusal_line([&] { parse_csv(text, "t.csv"); });
}

std::string npy_table_refusal(const std::string& bytes) {
  return refusal_line([&] { parse_npy(bytes, "t.npy"); });
}

std::string npy_with_header(const std::string& header, const std::string& data, char major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += major;
  bytes += '\0';
  const std::size_t width = major == 1 ? 2 : 4;
  for (std::size_t i = 0; i < width; ++i)
    bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}

std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                const std::string& fortran = "False", char major = 1) {
  return npy_with_header(
      "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }    \n",
      data, major);
}

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(table_file, csv_with_and_without_header) {
  const auto plain = parse_csv("1,2.5\n-3,+4e-1\n", "t.csv");
  EXPECT_EQ(rows_of(plain), (Rows{{1, 2.5}, {-3, 0.4}}));
  EXPECT_TRUE(plain.column_names.empty());
  EXPECT_EQ(plain.columns, 2u);
  const auto named = parse_csv("\xef\xbb\xbf x , \"y z\"\r\n 1 ,\t2\r\n3,4", "t.csv");
  EXPECT_EQ(rows_of(named), (Rows{{1, 2}, {3, 4}}));
  EXPECT_EQ(named.column_names, (std::vector<std::string>{"x", "y z"}));
  EXPECT_EQ(rows_of(parse_csv("7\n\n\n", "t.csv")), (Rows{{7}}));
}

const std::string may_be_names =
    "has numbers that may be the names of columns - say by header = true or header = false whether "
    "they are";

const std::string may_name_rows =
    ": the first column may be the names of rows - write the table without them (pandas: "
    "index=False)";

TEST(table_file, csv_takes_numbers_that_are_data) {
  for (const char* text :
       {"0,1,2\n3,4,5\n", "1,2\n3,4.5\n0.5,7\n", "0.0,1.0\n0.5,0.25\n", "3\n", "5,1\n7,0\n",
        "0.0,0.5\n0.1,0.7\n0.3,0.2\n", "0.5,1.0,1.5\n0.1,0.7,2\n0.3,0.2,1\n",
        "0.0,1.0,2.5\n0.1,0.7,2\n0.3,0.2,1\n", "0,1,2\n0.5,1.5,2.5\n1,0.5,4\n3.5,7,0.5\n4,5,1\n"}) {
    EXPECT_EQ(csv_refusal(text), "accepted") << text;
  }
  EXPECT_EQ(rows_of(parse_csv("1e-400,-2E-999\n0." + std::string(400, '0') + "1,1\n", "t.csv")),
            (Rows{{0, 0}, {0, 1}}));
}

TEST(table_file, csv_header_as_it_is_said) {
  const std::string numbers = "0,1\n0.5,2.5\n0.25,3.5\n";
  const DataTable with = parse_csv(numbers, "t.csv", true);
  EXPECT_EQ(rows_of(with), (Rows{{0.5, 2.5}, {0.25, 3.5}}));
  EXPECT_EQ(with.text(), "2 rows of 2 columns 0, 1, header");
  const DataTable without = parse_csv(numbers, "t.csv", false);
  EXPECT_EQ(rows_of(without), (Rows{{0, 1}, {0.5, 2.5}, {0.25, 3.5}}));
  EXPECT_EQ(without.text(), "3 rows of 2 columns, no header");
  EXPECT_EQ(parse_csv(",a\n1,2\n", "t.csv", true).column_names,
            (std::vector<std::string>{"", "a"}));
  EXPECT_EQ(refusal_line([] { parse_csv("a,b\n1,2\n", "t.csv", false); }),
            "t.csv:1: cell 1 is not a number: \"a\"");
  EXPECT_EQ(parse_npy(npy("<f8", "(1, 2)", bytes_of<double>({1, 2})), "t").text(),
            "1 row of 2 columns");
}

TEST(table_file, csv_refusals) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "t.csv: has no rows of numbers"},
      {"a,b\n", "t.csv: has no rows of numbers"},
      {"1,2\n3,,\n", "t.csv:2: cell 2 is empty"},
      {"1,2\n3,\n", "t.csv:2: cell 2 is empty"},
      {"1,\n", "t.csv:1: cell 2 is empty"},
      {"1,2\n3,abc\n", "t.csv:2: cell 2 is not a number: \"abc\""},
      {"a,b\n1,2\nc,d\n", "t.csv:3: cell 1 is not a number: \"c\""},
      {"a,2\n1,2\n", "t.csv:1: cell 1 is not a number: \"a\""},
      {"1,2\n3\n", "t.csv:2: has 1 cell, the lines before have 2"},
      {"1,2\n3,4,5\n", "t.csv:2: has 3 cells, the lines before have 2"},
      {"a,b\n1\n", "t.csv:2: has 1 cell, the lines before have 2"},
      {"1,2\nnan,4\n",
       "t.csv:2: cell 1 is not finite: nan - a missing value: leave out the rows that have one"},
      {"1,2\n3,-inf\n", "t.csv:2: cell 2 is not finite: -inf"},
      {"1\n1e999\n", "t.csv:2: cell 1 is not finite: 1e999"},
      {"0,1,2,3\n0.1,0.2,0.3,4\n0.5,0.6,0.7,8\n", "t.csv:1: " + may_be_names},
      {"0\n0.5\n0.25\n", "t.csv:1: " + may_be_names},
      {"1990,1991,1992\n7,3,1\n4,4,4\n", "t.csv:1: " + may_be_names},
      {"0.0,1.0,2.0\n0.1,0.2,0.7\n0.5,0.6,0.3\n", "t.csv:1: " + may_be_names},
      {"0.0,1.0\n0.1,0.2\n0.5,0.6\n", "t.csv:1: " + may_be_names},
      {"0.,1e0,2.00\n3,2,1\n4,4,4\n", "t.csv:1: " + may_be_names},
      {"0,0.1,0.2,0.3\n1.5,0.2,0.7,2\n2.5,0.6,0.3,1\n", "t.csv:1: " + may_be_names},
      {"1990.0,2000.0,2010.0\n7,3,1\n4,4,4\n", "t.csv:1: " + may_be_names},
      {",a,b\n0,1,2\n", "t.csv:1: cell 1 is empty" + may_name_rows},
      {",0,1\n0,1.5,2\n", "t.csv:1: cell 1 is empty" + may_name_rows},
      {",0.5,1.5\n0,1.5,2\n", "t.csv:1: cell 1 is empty"},
      {"\"\",\"a\",\"b\"\n1,1,2\n", "t.csv:1: cell 1 is \"\"" + may_name_rows},
      {"Unnamed: 0,a,b\n0,1,2\n", "t.csv:1: cell 1 is Unnamed: 0" + may_name_rows},
      {"1\n\n2\n", "t.csv:2: is blank"},
      {"\n1\n", "t.csv:1: is blank"},
      {"1;2\n3;4\n5;6\n",
       "t.csv:2: cell 1 is not a number: \"3;4\" - commas separate cells, and decimals have "
       "points"},
      {"1\n\"2\"\n", "t.csv:2: cell 1 is not a number: \"\"2\"\" - numbers stand without quotes"},
      {"1\n0x10\n", "t.csv:2: cell 1 is not a number: \"0x10\""},
      {"1\n+-2\n", "t.csv:2: cell 1 is not a number: \"+-2\""},
      {"1\n1 2\n",
       "t.csv:2: cell 1 is not a number: \"1 2\" - commas separate cells, and decimals have "
       "points"},
      {"\"a,b\",c\n1,2,3\n", "t.csv:1: has a comma or an open quote in a name"},
      {"1\n" + std::string(100, 'x') + "\n",
       "t.csv:2: cell 1 is not a number: \"" + std::string(40, 'x') + "...\""},
      {std::string("1\n2\0\n", 5),
       "t.csv: is not text in UTF-8 - save the table as CSV, or as NPY"},
      {"PK\x03\x04 and so on", "t.csv: is compressed - unpack it first"},
      {"a,b\r1,2\r",
       "t.csv: has lines that end by carriage returns alone - save it with line feeds"},
      {"a,b,\n1,2,\n", "t.csv:1: cell 3 is empty: a column has no name"},
      {"# made by\na,b\n1,2\n",
       "t.csv:2: cell 1 is not a number: \"a\" - line 1 is taken for the names of columns"},
      {"a,b\n1,5,2,5\n",
       "t.csv:2: has 4 cells, the lines before have 2 - numbers have decimal points"},
      {"1\n\xff\xc3_\xe2\x82\n", "t.csv:2: cell 1 is not a number: \"??_??\""},
  };
  for (const auto& [text, line] : cases) EXPECT_EQ(csv_refusal(text), line);
}

TEST(table_file, npy_types_orders_and_versions) {
  const Rows wanted = {{1, 2, 3}, {4, 5, 6}};
  const std::vector<double> c = {1, 2, 3, 4, 5, 6};
  const std::vector<double> fortran = {1, 4, 2, 5, 3, 6};
  for (const char major : {'\1', '\2', '\3'}) {
    EXPECT_EQ(rows_of(parse_npy(npy("<f8", "(2, 3)", bytes_of(c), "False", major), "t")), wanted);
  }
  EXPECT_EQ(rows_of(parse_npy(npy("<f8", "(2L, 3L)", bytes_of(c)), "t")), wanted);
  EXPECT_EQ(rows_of(parse_npy(npy("<f8", "(2, 3)", bytes_of(fortran), "True"), "t")), wanted);
  const auto reads = [&]<class T>(const char* type, T) {
    const std::vector<T> numbers = {1, 2, 3, 4, 5, 6};
    const DataTable table = parse_npy(npy(type, "(2, 3)", bytes_of(numbers)), "t");
    EXPECT_EQ(table.exact.empty(), (sizeof(T) < 4 || std::is_same_v<T, float>));
    return rows_of(table) == wanted;
  };
  EXPECT_TRUE(reads("<f4", float{}));
  EXPECT_TRUE(reads("|i1", std::int8_t{}));
  EXPECT_TRUE(reads("|u1", std::uint8_t{}));
  EXPECT_TRUE(reads("<i2", std::int16_t{}));
  EXPECT_TRUE(reads("<u2", std::uint16_t{}));
  EXPECT_TRUE(reads("<i4", std::int32_t{}));
  EXPECT_TRUE(reads("<u4", std::uint32_t{}));
  EXPECT_TRUE(reads("<i8", std::int64_t{}));
  EXPECT_TRUE(reads("<u8", std::uint64_t{}));
  EXPECT_EQ(rows_of(parse_npy(npy("|i1", "(2,)", "\xff\x7f"), "t")), (Rows{{-1}, {127}}));
  EXPECT_EQ(rows_of(parse_npy(npy("|u1", "(1, 2)", "\xff\x7f"), "t")), (Rows{{255, 127}}));
}

TEST(table_file, npy_refusals) {
  const std::string malformed = "t.npy: has a malformed NPY header";
  const std::string cut = "t.npy: is cut off in the NPY header";
  const std::string type_advice =
      " (allowed: little-endian floats of 2, 4 or 8 bytes, integers, booleans) - save it with "
      "array.astype(\"<f8\")";
  const std::string eight(8, '\0');
  const std::string good = npy("<f8", "(2,)", eight + eight);
  ASSERT_EQ(npy_table_refusal(good), "accepted");
  const std::string f8 = "{'descr': '<f8', 'fortran_order': False, 'shape': ";
  const std::pair<std::string, std::string> cases[] = {
      {"", "t.npy: is not an NPY file: it begins with other bytes"},
      {"\x93NUMPX" + good.substr(6), "t.npy: is not an NPY file: it begins with other bytes"},
      {good.substr(0, 7), cut},
      {good.substr(0, 9), cut},
      {good.substr(0, 40), cut},
      {npy("<f8", "(2,)", eight + eight, "False", 4),
       "t.npy: has NPY format 4.0 (allowed: 1.0, 2.0, 3.0)"},
      {"\x93NUMPY\x02" + std::string(1, '\0') + "\xff\xff\xff\xff{}", cut},
      {good.substr(0, good.size() - 1), "t.npy: has 15 bytes of numbers, its shape 2 needs 16"},
      {good + "x", "t.npy: has 17 bytes of numbers, its shape 2 needs 16"},
      {npy("<f8", "(4611686018427387904, 4)", eight),
       "t.npy: has 8 bytes of numbers, its shape 4611686018427387904 x 4 needs another length"},
      {npy("<f8", "(2305843009213693953,)", eight),
       "t.npy: has 8 bytes of numbers, its shape 2305843009213693953 needs another length"},
      {npy("<f8", "(1000000000000,)", eight),
       "t.npy: has 8 bytes of numbers, its shape 1000000000000 needs 8000000000000"},
      {npy("<f8", "(99999999999999999999,)", eight), malformed},
      {npy("<f8", "(-1,)", eight), malformed},
      {npy("<f8", "(1", eight), malformed},
      {npy("<f8", "1", eight), malformed},
      {npy("<f8", "(1.5,)", eight), malformed},
      {npy("<f8", "(0,)", ""), "t.npy: has no numbers: its shape is 0"},
      {npy("<f8", "(9223372036854775808, 0)", ""),
       "t.npy: has no numbers: its shape is 9223372036854775808 x 0"},
      {npy("<f8", "()", eight), "t.npy: has 0 axes (allowed: 1 or 2)"},
      {npy("<f8", "(1, 1, 1)", eight), "t.npy: has 3 axes (allowed: 1 or 2)"},
      {npy("<f8", "(1,)", eight, "Maybe"), malformed},
      {npy(">f8", "(1,)", eight), "t.npy: holds type >f8" + type_advice},
      {npy("|O", "(1,)", eight), "t.npy: holds type |O" + type_advice},
      {npy("<U2", "(1,)", eight), "t.npy: holds type <U2" + type_advice},
      {npy("|b2", "(4,)", eight), "t.npy: holds type |b2" + type_advice},
      {npy("<f\n", "(1,)", eight), "t.npy: holds type <f " + type_advice},
      {npy_with_header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", eight),
       "t.npy: holds type a record" + type_advice},
      {npy_with_header("", eight), malformed},
      {npy_with_header("{}", eight), malformed},
      {npy_with_header("{'descr': '<f8', 'shape': (1,)}", eight), malformed},
      {npy_with_header(f8 + "(1,), 'shape': (1,)}", eight), malformed},
      {npy_with_header(f8 + "(1,), 'more': 1}", eight), malformed},
      {npy_with_header(f8 + "(1,)} x", eight), malformed},
      {npy_with_header(f8 + "(1,)", eight), malformed},
      {npy_with_header("{'descr': '<f8", eight), malformed},
      {npy("<f8", "(1, 2)", eight + bytes_of<double>({1.0 / 0.0})),
       "t.npy: element [0][1] is not finite"},
      {npy("<f4", "(1,)", bytes_of<float>({0.0f / 0.0f})), "t.npy: element [0] is not finite"},
  };
  for (const auto& [bytes, line] : cases) EXPECT_EQ(npy_table_refusal(bytes), line);
}

/// Every prefix, and the file with each of its bytes changed, is read or refused: never worse.
TEST(table_file, npy_survives_damage) {
  const std::string good = npy("<f8", "(2, 2)", bytes_of<double>({1, 2, 3, 4}));
  std::size_t refused = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    refused += npy_table_refusal(good.substr(0, i)) != "accepted";
    for (const char byte : {'\0', '9', '\x7f', '\xff'}) {
      std::string damaged = good;
      damaged[i] = byte;
      EXPECT_EQ(npy_table_refusal(damaged).find('\n'), std::string::npos);
    }
  }
  EXPECT_EQ(refused, good.size());
}

class TableFiles : public FolderTest {};

TEST_F(TableFiles, AreToldApartByTheirFirstBytes) {
  write("a.csv", "1,2\n");
  write("b.dat", npy("|u1", "(1, 2)", "\x01\x02"));
  write("c.npy", "1,2\n");
  EXPECT_EQ(rows_of(read_table(at("a.csv"))), (Rows{{1, 2}}));
  EXPECT_EQ(rows_of(read_table(at("b.dat"))), (Rows{{1, 2}}));
  EXPECT_EQ(refusal_here([&] { read_table(at("c.npy")); }),
            "c.npy: is not an NPY file: it begins with other bytes");
  EXPECT_EQ(refusal_line([&] { read_table(folder_.string()); }),
            folder_.string() + ": is a directory, needs a file");
}

}  // namespace
}  // namespace headlab
