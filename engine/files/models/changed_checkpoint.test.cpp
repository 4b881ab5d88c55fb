// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/changed_checkpoint.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "engine/files/models/safetensors.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/refusal.h"

namespace headlab {
namespace {

std::string checkpoint_bytes(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

std::vector<double> numbers_in(const std::string& type, const std::string& data) {
  const std::string header = R"({"a":{"dtype":")" + type + R"(","shape":[)" +
                             std::to_string(data.size() / (type == "F64"   ? 8
                                                           : type == "F32" ? 4
                                                                           : 2)) +
                             R"(],"data_offsets":[0,)" + std::to_string(data.size()) + "]}}";
  SafetensorsFile file(std::make_unique<std::istringstream>(checkpoint_bytes(header, data)), "a");
  return file.read("a");
}

/// The numbers of 16 bits are dense enough that all of one sign can be tried.
TEST(TensorBytes, KeepEveryNumberOfTheirType) {
  std::string half, bfloat;
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    half += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
  }
  for (unsigned bits = 0x8000; bits < 0xff80; ++bits) {
    bfloat += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
  }
  EXPECT_TRUE(tensor_bytes("F16", numbers_in("F16", half)) == half);
  EXPECT_TRUE(tensor_bytes("BF16", numbers_in("BF16", bfloat)) == bfloat);
}

TEST(TensorBytes, AreTheNearest) {
  const std::vector<double> between = {1 + 0x1p-11,   1 + 3 * 0x1p-11, -(1 + 0x1.8p-11),
                                       2048 - 0x1p-1, 0x1p-25,         0x1.8p-25};
  // Halves go to even numbers; below 2^-24 there are none but 0.
  const std::vector<double> of_half = {1, 1 + 0x1p-9, -(1 + 0x1p-10), 2048, 0, 0x1p-24};
  EXPECT_EQ(numbers_in("F16", tensor_bytes("F16", between)), of_half);
  const std::vector<double> fine = {1 + 0x1p-8, 1 + 3 * 0x1p-8, -(1 + 0x1.8p-8)};
  const std::vector<double> of_bfloat = {1, 1 + 0x1p-6, -(1 + 0x1p-7)};
  EXPECT_EQ(numbers_in("BF16", tensor_bytes("BF16", fine)), of_bfloat);
  EXPECT_EQ(numbers_in("F32", tensor_bytes("F32", std::vector<double>{0.1})),
            std::vector<double>{static_cast<double>(0.1F)});
  EXPECT_EQ(numbers_in("F64", tensor_bytes("F64", std::vector<double>{0.1})),
            std::vector<double>{0.1});
}

class ChangedCheckpoint : public FolderTest {
 protected:
  /// Two tensors and a file of another kind.
  std::string model() {
    const std::string folder = at("model");
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/config.json") << "{}";
    std::string data(16, '\0');
    const float numbers[] = {1, 2, 3, 4};
    std::memcpy(data.data(), numbers, sizeof numbers);
    std::ofstream(folder + "/model.safetensors", std::ios::binary)
        << checkpoint_bytes(R"({"model.w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                            R"("model.b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
                            data);
    return folder;
  }
};

TEST_F(ChangedCheckpoint, HasTheNumbersAndAllElse) {
  const std::string from = model(), to = at("deep/out");
  write_changed_checkpoint(
      from, to,
      {.tensors = {{.name = "w", .shape = {1, 2}, .numbers = {5, 6}},
                   {.name = "more.model.b", .shape = {2}, .numbers = {0.5, -1}, .added = true}},
       .record = "{}\n"},
      false);
  SafetensorsFile file(to + "/model.safetensors");
  EXPECT_EQ(file.read("model.w"), (std::vector<double>{5, 6}));
  EXPECT_EQ(file.read("model.b"), (std::vector<double>{3.5, 3}));
  EXPECT_TRUE(std::filesystem::exists(to + "/config.json"));
  EXPECT_TRUE(std::filesystem::exists(to + "/headlab.json"));
  SafetensorsFile before(from + "/model.safetensors");
  EXPECT_EQ(before.read("model.w"), (std::vector<double>{1, 2}));
  // Another takes its place whole, and nothing else is left beside it.
  write_changed_checkpoint(from, to,
                           {.tensors = {{.name = "w", .shape = {1, 2}, .numbers = {7, 8}}}}, true);
  SafetensorsFile again(to + "/model.safetensors");
  EXPECT_EQ(again.read("model.b"), (std::vector<double>{3, 4}));
  const auto entries = std::filesystem::directory_iterator(at("deep"));
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(ChangedCheckpoint, HasNumbersThatLieAcrossTheBlocksOfACopy) {
  const std::string from = at("model"), to = at("out");
  std::filesystem::create_directories(from);
  const std::vector<double> numbers(300'000, 1);
  const std::string bytes = std::to_string(4 * numbers.size());
  std::ofstream(from + "/model.safetensors", std::ios::binary) << checkpoint_bytes(
      R"({"w":{"dtype":"F32","shape":[300000],"data_offsets":[0,)" + bytes + "]}}",
      std::string(4 * numbers.size(), '\0'));
  write_changed_checkpoint(
      from, to, {.tensors = {{.name = "w", .shape = {300'000}, .numbers = numbers}}}, false);
  EXPECT_EQ(SafetensorsFile(to + "/model.safetensors").read("w"), numbers);
}

TEST_F(ChangedCheckpoint, CopiesFilesBehindLinksAndNoFoldersBehindThem) {
  const std::string from = model(), to = at("out");
  std::filesystem::create_directories(from + "/more");
  std::filesystem::create_symlink("../config.json", from + "/more/link.json");
  std::filesystem::create_directory_symlink("..", from + "/more/above");
  std::filesystem::permissions(from + "/model.safetensors", std::filesystem::perms::owner_read);
  write_changed_checkpoint(from, to,
                           {.tensors = {{.name = "w", .shape = {1, 2}, .numbers = {5, 6}}}}, false);
  EXPECT_TRUE(std::filesystem::symlink_status(to + "/more/link.json").type() ==
              std::filesystem::file_type::regular);
  EXPECT_TRUE(std::filesystem::is_symlink(to + "/more/above"));
  EXPECT_EQ(std::filesystem::status(to + "/model.safetensors").permissions(),
            std::filesystem::perms::owner_read);
  ASSERT_EQ(::mkfifo((from + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal_here([&] { write_changed_checkpoint(from, to, {}, true); }),
            "model/pipe: is a pipe or a device, needs a file");
}

/// Bytes after the header of a safetensors file.
std::string tensors_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  EXPECT_EQ(size % 8, 0U);
  return bytes.substr(sizeof size + size);
}

/// Bytes of a tensor 4 x 3 and one of 4 are their numbers, so that what stays can be read.
TEST_F(ChangedCheckpoint, KeepsPartsAlongAnAxis) {
  const std::string from = at("model"), to = at("out");
  std::filesystem::create_directories(from);
  std::ofstream(from + "/config.json") << "{}";
  std::ofstream(from + "/model.safetensors", std::ios::binary)
      << checkpoint_bytes(R"({"__metadata__":{"format":"pt"},)"
                          R"("w":{"dtype":"U8","shape":[4,3],"data_offsets":[4,16]},)"
                          R"("b":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                          R"("c":{"dtype":"I8","shape":[],"data_offsets":[16,17]}})",
                          "abcdABCDEFGHIJKLz");
  const auto write = [&](const std::vector<TensorCut>& cuts) {
    write_changed_checkpoint(from, to, {.cuts = cuts, .config = "[]"}, true);
    return tensors_of(to + "/model.safetensors");
  };
  EXPECT_EQ(write({{"w", 0, {{1, 1}, {3, 1}}}, {"b", 0, {{2, 2}}}}), "cdDEFJKLz");
  EXPECT_EQ(write({{"w", 1, {{0, 1}, {2, 1}}}}), "abcdACDFGIJLz");
  const SafetensorsFile file(to + "/model.safetensors");
  EXPECT_EQ(file.tensors().at("w").shape, (std::vector<std::uint64_t>{4, 2}));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  std::ifstream config(to + "/config.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(config), {}), "[]");
  const auto index_after = [&](const std::string& text) {
    std::ofstream(from + "/model.safetensors.index.json") << text;
    write({{"b", 0, {{0, 1}}}});
    std::ifstream in(to + "/model.safetensors.index.json");
    std::string found{std::istreambuf_iterator<char>(in), {}};
    std::erase_if(found, [](char c) { return c == ' ' || c == '\n'; });
    return found;
  };
  EXPECT_EQ(index_after(R"({"metadata":{"total_size":17},"weight_map":{}})"),
            R"({"metadata":{"total_size":14},"weight_map":{}})");
  EXPECT_EQ(index_after(R"({"weight_map":{}})"), R"({"weight_map":{}})");
}

TEST_F(ChangedCheckpoint, IsRefusedInOneLine) {
  const std::string from = model(), to = at("out");
  const auto refused = [&](const TensorChange& change) {
    return refusal_here([&] { write_changed_checkpoint(from, to, {.tensors = {change}}, false); });
  };
  EXPECT_EQ(refused({.name = "v", .shape = {2}, .numbers = {0, 0}}), "model: has no tensor v");
  EXPECT_EQ(refused({.name = "w", .shape = {2, 1}, .numbers = {0, 0}}),
            "model: tensor model.w has shape 1 x 2, the plan has 2 x 1");
  EXPECT_FALSE(std::filesystem::exists(to));
}

}  // namespace
}  // namespace headlab
