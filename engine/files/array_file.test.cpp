// SPDX-License-Identifier: Apache-2.0
#include "engine/files/array_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>
#include <zlib.h>

#include <gtest/gtest.h>

#include "engine/files/netcdf/file.h"
#include "engine/files/zip_file.h"
#include "engine/testing/folder_test.h"
#include "kernels/testing/known_layers.h"

namespace headlab {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string captured_bytes() {
  return bytes_of(layer_answers("real-gpt-layer0.npz"));
}

std::string zip_refusal(const std::string& bytes) {
  return refusal_line([&] {
    ZipFile zip(std::make_unique<std::istringstream>(bytes), "a.npz");
    for (const auto& [name, entry] : zip.entries()) zip.check(name);
  });
}

TEST(ArrayFile, ReadsTheArraysOfAnArchive) {
  const auto file = open_array_file(layer_answers("real-gpt-layer0.npz").string());
  ASSERT_TRUE(file->arrays().contains("q"));
  const ArrayInfo& q = file->arrays().at("q");
  EXPECT_EQ(q.kind, NumberKind::single);
  EXPECT_EQ(q.shape, (std::vector<std::uint64_t>{8, 8, 48, 8}));
  EXPECT_EQ(file->arrays().at("document").kind, NumberKind::whole);
  EXPECT_NEAR(file->read("scale").at(0), 0.35355338, 1e-8);
  const std::vector<double> all = file->read("q"), some = file->read("q", 3, 2);
  const std::size_t item = 8 * 48 * 8;
  ASSERT_EQ(some.size(), 2 * item);
  EXPECT_EQ(some, std::vector<double>(all.begin() + 3 * item, all.begin() + 5 * item));
}

TEST(ArrayFile, ReadsSomeRowsOfTheTablesOfAnItem) {
  const auto file = open_array_file(layer_answers("real-gpt-layer0.npz").string());
  const std::vector<double> all = file->read("q");
  const std::vector<std::uint32_t> rows = {2, 3, 47};
  std::vector<double> expected;
  for (std::size_t table = 5 * 8; table < 6 * 8; ++table) {
    for (const std::size_t row : rows) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>((table * 48 + row) * 8);
      expected.insert(expected.end(), begin, begin + 8);
    }
  }
  std::vector<double> found(expected.size()), in_general(expected.size());
  file->read_rows("q", 5, rows, found);
  EXPECT_EQ(found, expected);
  file->ArrayFile::read_rows("q", 5, rows, in_general);
  EXPECT_EQ(in_general, expected);
  std::vector<float> singles(expected.size());
  file->read_rows("q", 5, rows, singles);
  EXPECT_EQ(std::vector<double>(singles.begin(), singles.end()), expected);
}

class NetcdfArrays : public FolderTest {};

TEST_F(NetcdfArrays, ReadAxesByTheirNames) {
  const std::string path = at("axes.nc");
  NetcdfImage image;
  const NetcdfGroup root = image.root();
  root.define_dimension("sequence", 3);
  root.define_dimension("head", 2);
  root.define_dimension("d", 2);
  root.write("sequence", {"sequence"}, {}, std::vector<std::int64_t>{30, 10, 20});
  const NetcdfGroup layer = root.define_group("layer_1");
  layer.write("z", {"d", "head", "sequence"}, {},
              std::vector<double>{0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112});
  image.save(path);
  const auto file =
      open_array_file(path, {.of = {{"z", {"sequence", "head", "d"}}}, .items = "sequence"});
  EXPECT_FALSE(file->arrays().contains("sequence"));
  EXPECT_EQ(file->arrays().at("layers.1.z").shape, (std::vector<std::uint64_t>{3, 2, 2}));
  EXPECT_EQ(file->read("layers.1.z", 1, 2),
            (std::vector<double>{1, 101, 11, 111, 2, 102, 12, 112}));
  EXPECT_EQ(refusal_line([&] {
              open_array_file(path, {.of = {{"z", {"sequence", "head", "d"}}}});
            }),
            path +
                ": variable sequence has 30 at place 0, needs 0, 1, .. in this order - sort by "
                "it, or leave it out");
}

/// Both ways to keep an entry, and parts in any order.
TEST(ZipFile, ReadsParts) {
  const std::string content = captured_bytes();
  for (const bool deflated : {false, true}) {
    std::string packed(compressBound(content.size()), '\0');
    z_stream stream = {};
    ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    const std::string stored = deflated ? packed : content;
    const auto bytes = [](std::uint64_t number, int count) {
      std::string text;
      for (int i = 0; i < count; ++i, number >>= 8) text += static_cast<char>(number & 255);
      return text;
    };
    const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    const std::string common = bytes(deflated ? 8 : 0, 2) + bytes(0, 4) + bytes(sum, 4) +
                               bytes(stored.size(), 4) + bytes(content.size(), 4) + bytes(1, 2);
    const std::string local = "PK\3\4" + bytes(20, 2) + bytes(0, 2) + common + bytes(0, 2) + "a";
    const std::string list = "PK\1\2" + bytes(20, 4) + bytes(0, 2) + common + bytes(0, 16) + "a";
    const std::string archive = local + stored + list + "PK\5\6" + bytes(0, 4) + bytes(1, 2) +
                                bytes(1, 2) + bytes(list.size(), 4) +
                                bytes(local.size() + stored.size(), 4) + bytes(0, 2);
    ZipFile zip(std::make_unique<std::istringstream>(archive), "a.npz");
    zip.check("a");
    for (const std::size_t first : {200'000U, 70'000U, 70'100U, 0U, 300'000U, 300'001U}) {
      EXPECT_TRUE(zip.read("a", first, 100'000) == content.substr(first, 100'000)) << first;
    }
    EXPECT_EQ(zip.read("a", content.size(), 5), "");
  }
}

TEST(ZipFile, NoticesADamagedByte) {
  const std::string good = captured_bytes();
  ASSERT_EQ(zip_refusal(good), "accepted");
  std::string bad = good;
  bad[good.size() / 2] = static_cast<char>(bad[good.size() / 2] ^ 1);
  const std::string found = zip_refusal(bad);
  EXPECT_TRUE(found.find("checksum") != std::string::npos ||
              found.find("unpack") != std::string::npos)
      << found;
}

TEST(ZipFile, RefusesWhatIsCutShort) {
  const std::string good = captured_bytes();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{4}, std::size_t{30}, good.size() / 2, good.size() - 30}) {
    EXPECT_NE(zip_refusal(good.substr(0, size)), "accepted") << size;
  }
}

TEST(ZipFile, RefusesEntriesOutsideTheFile) {
  // The place of the first entry's header, in the list that the last bytes point to.
  const std::string good = captured_bytes();
  const std::size_t list = good.find("PK\1\2");
  for (const std::size_t at : {std::size_t{20}, std::size_t{24}, std::size_t{42}}) {
    std::string bad = good;
    bad.replace(list + at, 4, "\xf0\xff\xff\xf0");
    EXPECT_NE(zip_refusal(bad), "accepted") << at;
  }
}

TEST(NpyText, IsTheTextOfOneText) {
  std::string header = "{'descr': '<U6', 'fortran_order': False, 'shape': (), }";
  header.append(128 - 10 - header.size() - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\1\0v\0", 10);
  bytes += header;
  for (const char c : std::string("full")) bytes += {c, '\0', '\0', '\0'};
  bytes.append(8, '\0');
  EXPECT_EQ(npy_text(bytes), "full");
  EXPECT_FALSE(npy_text("no array"));
  EXPECT_FALSE(npy_text(npy_bytes({}, std::vector<double>{1})));
}

}  // namespace
}  // namespace headlab
