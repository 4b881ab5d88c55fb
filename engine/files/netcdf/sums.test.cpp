// SPDX-License-Identifier: Apache-2.0
#include "engine/files/netcdf/sums.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <netcdf.h>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_sum.h"
#include "engine/files/json_writer.h"
#include "engine/files/netcdf/file.h"
#include "engine/testing/folder_test.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 24;

class NetcdfSums : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    path_ = at("sums.nc");
    NetcdfImage image;
    const NetcdfGroup root = image.root();
    root.put_attribute("headlab_version", "0");
    root.put_attribute("count", std::int64_t{3});
    root.put_attribute("long", std::string(5000, 'x'));
    root.define_dimension("row", 3);
    root.define_dimension("none", 0);
    root.write("numbers", {"row"}, {"numbers"}, std::vector<double>{1, 2, 3});
    root.write("single", {}, {"one"}, std::vector<double>{4});
    root.write("nothing", {"none"}, {"none"}, std::vector<double>{});
    const NetcdfGroup inside = root.define_group("inside");
    inside.put_attribute("note", "text");
    inside.write("whole", {"row"}, {"whole"}, std::vector<std::int64_t>{5, 6, 7});
    inside.write("texts", {"row"}, {"texts", ""}, std::vector<std::string>{"a", "", "c"});
    image.save(path_);
  }

  std::string bytes() const { return read_file(path_, max_bytes); }

  /// Changes the file as another program does.
  void edit(const std::function<int(int)>& change) const {
    int root = -1;
    ASSERT_EQ(nc_open(path_.c_str(), NC_WRITE, &root), NC_NOERR);
    EXPECT_EQ(change(root), NC_NOERR);
    ASSERT_EQ(nc_close(root), NC_NOERR);
  }

  /// What reading says.
  std::string refusal() const {
    return refusal_line<NetcdfDamage>([&] {
      const NetcdfInput file(path_);
      const NetcdfGroup root = file.root();
      EXPECT_EQ(root.doubles("numbers"), (std::vector<double>{1, 2, 3}));
      EXPECT_EQ(root.doubles("single"), std::vector<double>{4});
      EXPECT_EQ(root.text_attribute("long"), std::string(5000, 'x'));
      EXPECT_EQ(root.integer_attribute("count"), 3);
      EXPECT_EQ(root.dimension("none"), 0u);
      const NetcdfGroup inside = root.find_group("inside");
      EXPECT_EQ(inside.integers("whole"), (std::vector<std::int64_t>{5, 6, 7}));
      EXPECT_EQ(inside.texts("texts"), (std::vector<std::string>{"a", "", "c"}));
      EXPECT_EQ(inside.text_attribute("note"), "text");
      EXPECT_FALSE(root.has_variable("mine"));
      EXPECT_FALSE(root.has_attribute("mine"));
    });
  }

  std::string path_;
};

int group_of(int root) {
  int group = -1;
  nc_inq_grp_ncid(root, "inside", &group);
  return group;
}

int variable_of(int group, const char* name) {
  int variable = -1;
  nc_inq_varid(group, name, &variable);
  return variable;
}

TEST_F(NetcdfSums, EveryBitOfTheBytesCounts) {
  const std::string good = bytes();
  ASSERT_EQ(trailer_of(good), Trailer::right);
  EXPECT_EQ(refusal(), "accepted");
  // The start, with what HDF5 reads first, and bytes all over the file; not the words of the sum's
  // own line, without which the file is one to which others appended.
  const std::size_t content = good.size() - netcdf_trailer_size;
  for (std::size_t at = 0; at < content; at += at < 512 ? 1 : 997) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    EXPECT_EQ(trailer_of(bad), Trailer::wrong) << at;
  }
  EXPECT_EQ(trailer_of(good.substr(0, content)), Trailer::none);
}

TEST_F(NetcdfSums, WhatIsAddedIsNotThere) {
  edit([](int root) {
    int variable = -1, dimension = -1, group = -1;
    nc_def_dim(root, "more", 2, &dimension);
    nc_def_var(root, "mine", NC_DOUBLE, 1, &dimension, &variable);
    nc_def_grp(root, "others", &group);
    nc_put_att_text(group_of(root), variable_of(group_of(root), "whole"), "mine", 1, "x");
    return nc_put_att_text(root, NC_GLOBAL, "mine", 1, "x");
  });
  EXPECT_EQ(trailer_of(bytes()), Trailer::none);
  EXPECT_EQ(refusal(), "accepted");
  std::string content = bytes();
  const NetcdfCopy copy = checked_netcdf_copy(content);
  EXPECT_FALSE(copy.lacks_sums);
  EXPECT_EQ(copy.others, (std::vector<std::string>{
                             "attribute mine of group /", "dimension /more", "variable /mine",
                             "attribute mine of variable /inside/whole", "group /others"}));
}

TEST_F(NetcdfSums, WhatIsChangedIsNamed) {
  const std::string good = bytes();
  const double number = 2.5;
  const long long whole = 9;
  const char* const text = "b";
  const std::size_t second = 1;
  const std::vector<std::pair<std::string, std::function<int(int)>>> edits = {
      {"variable /numbers has another sum",
       [&](int root) { return nc_put_var1(root, variable_of(root, "numbers"), &second, &number); }},
      {"variable /single has another sum",
       [&](int root) { return nc_put_var(root, variable_of(root, "single"), &number); }},
      {"variable /inside/whole has another sum",
       [&](int root) {
         const int group = group_of(root);
         return nc_put_var1(group, variable_of(group, "whole"), &second, &whole);
       }},
      {"variable /inside/texts has another sum",
       [&](int root) {
         const int group = group_of(root);
         return nc_put_var1(group, variable_of(group, "texts"), &second, &text);
       }},
      {"variable /numbers has another sum",
       [](int root) {
         return nc_put_att_text(root, variable_of(root, "numbers"), "units", 1, "m");
       }},
      {"group / has another sum",
       [&](int root) {
         return nc_put_att_longlong(root, NC_GLOBAL, "count", NC_INT64, 1, &whole);
       }},
      {"attribute note of group /inside is missing",
       [](int root) { return nc_del_att(group_of(root), NC_GLOBAL, "note"); }},
      {"variable /single is missing",
       [](int root) { return nc_rename_var(root, variable_of(root, "single"), "double"); }},
      {"attribute sums",
       [](int root) { return nc_put_att_text(root, NC_GLOBAL, netcdf_sums_attribute, 1, "x"); }},
      {"group / has no sum",
       [](int root) { return nc_put_att_text(root, NC_GLOBAL, netcdf_sums_attribute, 0, ""); }},
  };
  for (const auto& [said, change] : edits) {
    write_atomically(path_, good);
    edit(change);
    EXPECT_EQ(refusal(), "is damaged: " + said);
  }
}

TEST_F(NetcdfSums, AFileWithoutSumsIsRead) {
  edit([](int root) { return nc_del_att(root, NC_GLOBAL, netcdf_sums_attribute); });
  EXPECT_EQ(refusal(), "accepted");
  std::string content = bytes();
  EXPECT_TRUE(checked_netcdf_copy(content).lacks_sums);
  edit([](int root) { return nc_del_att(root, NC_GLOBAL, "headlab_version"); });
  content = bytes();
  EXPECT_FALSE(checked_netcdf_copy(content).lacks_sums);  // of a user, and never had any
}

/// A file of variables x0, x1, ... of `rows` numbers that are never written, and what reading says.
class UnwrittenFiles : public NetcdfSums {
 protected:
  std::string refusal_of(int variables, std::size_t rows, const char* packed = nullptr) const {
    int file = -1, dimension = -1, variable = -1;
    EXPECT_EQ(nc_create(path_.c_str(), NC_NETCDF4 | NC_CLOBBER, &file), NC_NOERR);
    EXPECT_EQ(nc_def_dim(file, "row", rows, &dimension), NC_NOERR);
    for (int i = 0; i < variables; ++i) {
      const std::string name = "x" + std::to_string(i);
      EXPECT_EQ(nc_def_var(file, name.c_str(), NC_DOUBLE, 1, &dimension, &variable), NC_NOERR);
      if (packed != nullptr) {
        EXPECT_EQ(nc_put_att_text(file, variable, "scale_factor", 1, packed), NC_NOERR);
      }
    }
    EXPECT_EQ(nc_close(file), NC_NOERR);
    std::string content = bytes();
    EXPECT_LT(2000 * content.size(), std::size_t{1} << 25);
    return refusal_line<std::runtime_error>([&] { checked_netcdf_copy(content); });
  }
};

TEST_F(UnwrittenFiles, AreReadUpToALimitOfTheFile) {
  constexpr std::size_t row = std::size_t{1} << 19;
  const auto begins = [&](const std::string& line, const std::string& name) {
    EXPECT_TRUE(line.starts_with("is damaged: variable /" + name + ": has more values than a file"))
        << line;
  };
  EXPECT_EQ(refusal_of(8, row), "accepted");  // as many bytes as the limit
  begins(refusal_of(9, row), "x8");
  begins(refusal_of(1, 8 * row + 1), "x0");
}

TEST_F(UnwrittenFiles, AreRefusedForTheMemoryBeforeAnyIsRead) {
  const test::PlayedMachine small{{"HEADLAB_MEMORY_LIMIT", "1048576"}};
  constexpr std::size_t rows = std::size_t{3} << 15;  // 0.75 MiB
  EXPECT_EQ(refusal_of(1, rows), "accepted");
  const std::string refused =
      "variable /x1: needs 1.5 MiB of memory with the variables before it, 1.0 MiB available";
  EXPECT_EQ(refusal_of(2, rows), refused);
  EXPECT_EQ(refusal_of(2, rows, "a"), refused);  // whatever reading x0 would say
}

/// A file with one variable of three numbers as another program packs them.
class PackedFiles : public NetcdfSums {
 protected:
  template <class T>
  std::vector<double> read(nc_type type, const std::vector<T>& numbers,
                           const std::function<int(int, int)>& attributes) const {
    int file = -1, dimension = -1, variable = -1;
    EXPECT_EQ(nc_create(path_.c_str(), NC_NETCDF4 | NC_CLOBBER, &file), NC_NOERR);
    EXPECT_EQ(nc_def_dim(file, "row", 3, &dimension), NC_NOERR);
    EXPECT_EQ(nc_def_var(file, "x", type, 1, &dimension, &variable), NC_NOERR);
    EXPECT_EQ(attributes(file, variable), NC_NOERR);
    if (!numbers.empty()) {
      EXPECT_EQ(nc_put_var(file, variable, numbers.data()), NC_NOERR);
    }
    EXPECT_EQ(nc_close(file), NC_NOERR);
    const NetcdfInput input(path_);
    whole_ = input.root().holds_integers("x");
    single_ = input.root().holds_singles("x");
    if (whole_) {
      EXPECT_EQ(input.root().integers("x").size(), 3u);
    }
    return input.root().doubles("x");
  }
  static int number(int file, int variable, const char* name, double value) {
    return nc_put_att_double(file, variable, name, NC_DOUBLE, 1, &value);
  }
  mutable bool whole_ = false, single_ = false;
};

TEST_F(PackedFiles, AreReadAsWhatTheyMean) {
  const auto expect = [](const std::vector<double>& found, const std::vector<double>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(wanted[i]))) << i;
    }
  };
  const double nan = std::nan("");
  const auto plain = [](int, int) { return NC_NOERR; };
  const std::vector<std::int16_t> shorts = {-3, 7, -32768};
  const short fill = -32768;
  expect(read(NC_SHORT, shorts, plain), {-3, 7, -32768});
  EXPECT_TRUE(whole_);
  expect(read(NC_SHORT, shorts,
              [&](int file, int variable) {
                number(file, variable, "scale_factor", 0.25);
                number(file, variable, "add_offset", 1);
                return nc_put_att_short(file, variable, "_FillValue", NC_SHORT, 1, &fill);
              }),
         {0.25, 2.75, nan});
  EXPECT_FALSE(whole_ || single_);
  expect(read(NC_SHORT, shorts,
              [&](int file, int variable) {
                return nc_put_att_text(file, variable, "_Unsigned", 4, "true");
              }),
         {65533, 7, 32768});
  const std::vector<std::int32_t> whole = {1, 2, 3};
  const auto missing = [](double value) {
    return
        [value](int file, int variable) { return number(file, variable, "missing_value", value); };
  };
  expect(read(NC_INT, whole, missing(2)), {1, nan, 3});
  EXPECT_FALSE(whole_);
  expect(read(NC_INT, whole, missing(4)), {1, 2, 3});
  EXPECT_TRUE(whole_);
  expect(read(NC_INT, whole,
              [](int file, int variable) { return number(file, variable, "valid_max", 2); }),
         {1, 2, nan});
  expect(read(NC_FLOAT, std::vector<float>{1, 2, 3}, missing(3)), {1, 2, nan});
  EXPECT_TRUE(single_);
  // Never written.
  expect(read(NC_DOUBLE, std::vector<double>(), plain), {nan, nan, nan});
  expect(read(NC_INT, std::vector<int>(), plain), {nan, nan, nan});
}

TEST_F(PackedFiles, AreRefusedWhereTheirAttributesSayNothing) {
  const auto refused = [&](const std::function<int(int, int)>& attributes) {
    return refusal_line<NetcdfError>([&] { read(NC_INT, std::vector<int>{1, 2, 3}, attributes); });
  };
  const double two[] = {1, 2};
  EXPECT_EQ(refused([](int file, int variable) {
              return nc_put_att_text(file, variable, "scale_factor", 3, "0.5");
            }),
            "is damaged: variable /x has attribute scale_factor that is not a number");
  EXPECT_EQ(refused([&](int file, int variable) {
              return nc_put_att_double(file, variable, "add_offset", NC_DOUBLE, 2, two);
            }),
            "is damaged: variable /x has attribute add_offset that is not one number");
}

TEST(JsonSums, EveryBitOfAPartCounts) {
  std::string text;
  JsonWriter out([&](std::string_view part) { text += part; }, {.sum = true});
  out.begin_object();
  out.key("a \"b\"");
  out.number(0.5);
  out.key("c");
  out.begin_array();
  out.string("x  \\");
  out.end_array();
  out.end_object();
  out.finish();
  ASSERT_TRUE(check_json_sum("f", text)) << text;
  const std::string shown = to_json(*parse_json(text));
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string bad = text;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    try {
      const bool has_sum = check_json_sum("f", bad);
      const std::optional<Value> read = parse_json(bad);
      // The name of the sum itself may be another: nothing else is.
      if (!read) continue;
      EXPECT_TRUE(!has_sum || to_json(*read) == shown) << bad;
      EXPECT_TRUE(has_sum || bad.substr(0, bad.find("],")) == text.substr(0, text.find("],")))
          << bad;
    } catch (const InvalidInput& error) {
      EXPECT_STREQ(error.what(), "f: is damaged: its text has another sum");
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(JsonSums, SpaceBetweenPartsDoesNotCount) {
  std::string text;
  JsonWriter out([&](std::string_view part) { text += part; }, {.lines = 0, .sum = true});
  out.begin_object();
  out.key("a");
  out.string(" ");
  out.end_object();
  out.finish();
  EXPECT_TRUE(check_json_sum("f", text));
  EXPECT_TRUE(check_json_sum("f", "{ \"a\" :\t" + text.substr(text.find(":") + 1) + "\n"));
  std::string other = text;
  other.replace(other.find("\" \""), 3, "\"  \"");
  EXPECT_THROW(check_json_sum("f", other), InvalidInput);
}

}  // namespace
}  // namespace headlab
