// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/shard_output.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

class ShardFiles : public FolderTest {};

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(Slabs, AreTheRangeInOrder) {
  const std::vector<std::uint64_t> shape = {3, 4, 5};
  for (std::uint64_t first = 0; first < 60; ++first) {
    for (std::uint64_t elements = 0; first + elements <= 60; ++elements) {
      std::vector<std::uint64_t> visited;
      int parts = 0;
      for_each_slab(shape, first, elements,
                    [&](const auto& start, const auto& count, std::uint64_t size) {
                      ++parts;
                      EXPECT_EQ(count[0] * count[1] * count[2], size);
                      for (std::size_t i = start[0]; i < start[0] + count[0]; ++i) {
                        for (std::size_t j = start[1]; j < start[1] + count[1]; ++j) {
                          for (std::size_t k = start[2]; k < start[2] + count[2]; ++k) {
                            visited.push_back((i * 4 + j) * 5 + k);
                          }
                        }
                      }
                    });
      std::vector<std::uint64_t> expected(elements);
      std::iota(expected.begin(), expected.end(), first);
      ASSERT_EQ(visited, expected);
      EXPECT_LE(parts, 5);  // two ends in two dimensions, and the middle
    }
  }
}

TEST(NpyHeader, IsWhatNumPyWrites) {
  const std::string header = npy_header(NumberType::float32, {3, 4});
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_TRUE(header.substr(10).starts_with(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } "));
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(npy_header(NumberType::int64, {7}).find("'<i8', 'fortran_order': False, 'shape': (7,)"),
            std::string::npos);
  EXPECT_EQ(npy_header(NumberType::float64, std::vector<std::uint64_t>(20, 1000000)).size() % 64,
            0u);
}

const std::vector<DatasetVariable> two_variables = {
    {"a", NumberType::float32, {"r", "n"}, {6, 50}, "numbers"},
    {"b", NumberType::float64, {"r"}, {6}, "more numbers"}};

/// Puts a = 0, 1, ... in pieces, the last one first where `backwards`, and b = 0.5, 1.5, ...
void fill(ShardOutput& output, bool backwards) {
  std::vector<float> a(300);
  std::iota(a.begin(), a.end(), 0.0f);
  std::vector<double> b(6);
  std::iota(b.begin(), b.end(), 0.5);
  const std::span all(a);
  const std::vector<std::size_t> cuts = {0, 70, 71, 250, 300};
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::size_t p = backwards ? cuts.size() - 2 - i : i;
    output.put(0, cuts[p], std::as_bytes(all.subspan(cuts[p], cuts[p + 1] - cuts[p])));
    if (i == 1) output.put(1, 0, std::as_bytes(std::span(b)));
  }
  output.close();
}

TEST_F(ShardFiles, HoldTheSameBytesInWhateverOrderTheyAreFilled) {
  const DatasetAttributes attributes = {{{"title", "t"}, {"long", std::string(9000, 'x')}},
                                        {{"number", 7}}};
  for (const DatasetFormat format : {DatasetFormat::npy, DatasetFormat::netcdf}) {
    const std::string name = name_of(format);
    for (const bool backwards : {false, true}) {
      const std::string path = at(name + (backwards ? "1" : "0"));
      fill(*open_shard(format, path, path, two_variables, attributes), backwards);
    }
    const std::string inside = format == DatasetFormat::npy ? "/a.npy" : "";
    const std::string forwards = contents(at(name + "0" + inside));
    EXPECT_EQ(forwards, contents(at(name + "1" + inside)));
    EXPECT_GT(forwards.size(), 1200u);
  }
  std::vector<float> a(300);
  std::iota(a.begin(), a.end(), 0.0f);
  const std::string npy = contents(at("npy0/a.npy"));
  EXPECT_EQ(npy, npy_header(NumberType::float32, {6, 50}) +
                     std::string(reinterpret_cast<const char*>(a.data()), 1200));
  const NetcdfInput input(at("netcdf0"));
  EXPECT_EQ(input.root().doubles("a"), std::vector<double>(a.begin(), a.end()));
  EXPECT_EQ(input.root().doubles("b"), (std::vector<double>{0.5, 1.5, 2.5, 3.5, 4.5, 5.5}));
  EXPECT_EQ(input.root().text_attribute("long"), std::string(9000, 'x'));
}

TEST_F(ShardFiles, SayWhatKeepsThemFromBeingWritten) {
  for (const DatasetFormat format : {DatasetFormat::npy, DatasetFormat::netcdf}) {
    const std::string line = refusal_line<RunFailed>(
        [&] { open_shard(format, at("no/such/place"), "shown", two_variables, {}); });
    EXPECT_TRUE(line.starts_with("shown: cannot be written (")) << line;
  }
}

TEST_F(ShardFiles, AreTemporaryUntilTheyAreFinished) {
  {
    TemporaryPath unfinished(at("condition/shard"));
    std::ofstream(unfinished.name()) << "half";
  }
  EXPECT_FALSE(fs::exists(at("condition")));  // nothing else was in it

  fs::create_directories(at("condition/shard"));
  std::ofstream(at("condition/shard/new")) << "old";
  std::ofstream(at("condition/shard/notes")) << "of the user";
  TemporaryPath path(at("condition/shard"));
  fs::create_directory(path.name());
  std::ofstream(path.name() + "/new") << "new";
  path.rename();
  EXPECT_FALSE(fs::exists(path.name()));
  EXPECT_EQ(contents(at("condition/shard/notes")), "of the user");
  EXPECT_EQ(contents(at("condition/shard/new")), "new");
}

TEST_F(ShardFiles, AreNotWrittenThroughLinks) {
  fs::create_directories(at("elsewhere"));
  fs::create_directory_symlink("elsewhere", at("condition"));
  EXPECT_THROW(TemporaryPath path(at("condition/shard")), RunFailed);
  EXPECT_TRUE(fs::is_empty(at("elsewhere")));
}

}  // namespace
}  // namespace headlab
