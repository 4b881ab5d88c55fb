// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/safetensors.h"

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 255);
  return bytes;
}

std::string file_of(const std::string& header, const std::string& data) {
  return length_bytes(header.size()) + header + data;
}

SafetensorsFile open(const std::string& bytes) {
  return {std::make_unique<std::istringstream>(bytes), "t"};
}

std::string safetensors_refusal(const std::string& bytes) {
  return refusal_line([&] {
    SafetensorsFile file = open(bytes);
    for (const auto& [name, tensor] : file.tensors()) file.read(name);
  });
}

template <class T>
std::string bytes_of(std::initializer_list<T> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(T)};
}

std::string one_tensor(const std::string& type, const std::string& shape, const std::string& data) {
  return file_of(R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" +
                     std::to_string(data.size()) + "]}}",
                 data);
}

TEST(Safetensors, ReadsEachType) {
  const auto read = [](const std::string& type, const std::string& data) {
    return open(one_tensor(type,
                           "[" +
                               std::to_string(data.size() / (type == "F64"   ? 8
                                                             : type == "F32" ? 4
                                                                             : 2)) +
                               "]",
                           data))
        .read("a");
  };
  using Numbers = std::vector<double>;
  EXPECT_EQ(read("F64", bytes_of<double>({0.1, -3})), (Numbers{0.1, -3}));
  EXPECT_EQ(read("F32", bytes_of<float>({0.1f, -3})), (Numbers{static_cast<double>(0.1f), -3}));
  // 1, -2, the largest, the smallest normal, the smallest at all, minus 0, 1/3 rounded.
  EXPECT_EQ(read("F16",
                 bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x3555})),
            (Numbers{1, -2, 65504, 0x1p-14, 0x1p-24, 0, 0.333251953125}));
  EXPECT_EQ(read("BF16", bytes_of<std::uint16_t>({0x3f80, 0xc000, 0x3eab})),
            (Numbers{1, -2, 0.333984375}));
}

TEST(Safetensors, ReadsTensorsInAnyOrder) {
  SafetensorsFile file =
      open(file_of(R"({ "late":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},)"
                   R"("__metadata__":{"format":"pt"},)"
                   R"("flag":{"data_offsets":[16,17],"shape":[],"dtype":"BOOL"},)"
                   R"("scales":{"data_offsets":[17,19],"shape":[4],"dtype":"F4_OF_NEXT_YEAR"},)"
                   R"("none":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]},)"
                   R"("early":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}  )",
                   bytes_of<double>({7}) + bytes_of<float>({1, 2}) + "xyz"));
  EXPECT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.read("early"), std::vector<double>{7});
  EXPECT_EQ(file.read("late"), (std::vector<double>{1, 2}));
  EXPECT_EQ(file.tensors().at("late").shape, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_TRUE(file.read("none").empty());
  EXPECT_EQ(refusal_line([&] { file.read("flag"); }),
            "t: tensor \"flag\" has type BOOL (allowed: F64, F32, F16, BF16)");
}

TEST(Safetensors, NamesThePointerThatStandsForAFile) {
  EXPECT_EQ(
      safetensors_refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
      "t: is a pointer of Git LFS in place of the file - fetch that with git lfs pull");
}

TEST(Safetensors, RefusesWhatIsMalformed) {
  const std::string eight(8, '\0');
  const std::string sixteen(16, '\0');
  ASSERT_EQ(safetensors_refusal(one_tensor("F64", "[1]", eight)), "accepted");
  const std::string other_bytes =
      "t: is not a safetensors file: it begins with other bytes - give the model's folder, or its "
      "file that ends in .safetensors";
  const std::string malformed = "t: has a malformed safetensors header";
  const std::string at_a = malformed + " at tensor \"a\"";
  const std::string a = R"({"a":{"dtype":"F64","shape":[1],)";
  const auto no_json = [&](int byte) {
    return malformed + ": no JSON at byte " + std::to_string(byte);
  };
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
           R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "t: is not a safetensors file: it has fewer than 8 bytes"},
      {std::string(7, '\0'), "t: is not a safetensors file: it has fewer than 8 bytes"},
      {std::string(8, '\0'), "t: has a safetensors header that is not an object"},
      {std::string(8, '\xff'), other_bytes},
      {length_bytes(3) + "{}", other_bytes},
      {length_bytes(100'000'001) + std::string(100'000'001, ' '), other_bytes},
      {file_of("[]", ""), "t: has a safetensors header that is not an object"},
      {file_of("\xef\xbb\xbf{}", ""), "t: has a safetensors header that is not an object"},
      {file_of("{", ""), no_json(2)},
      {file_of("{}x", ""), no_json(3)},
      {file_of("{\"\xff\":1}", ""), no_json(3)},
      {file_of("{\"a\":1}", ""), at_a},
      {file_of("{\"a\":[]}", ""), at_a},
      {file_of("{\"a\":{}}", ""), at_a},
      {file_of("{\"a\":{\"b\":{}}}", ""), at_a},
      {file_of("{\"__metadata__\":{\"x\":1}}", ""), malformed},
      {file_of("{\"__metadata__\":{\"x\":{}}}", ""), malformed},
      {file_of("{\"__metadata__\":{},\"__metadata__\":{}}", ""),
       "t: has tensor \"__metadata__\" twice"},
      {file_of(std::string(100000, '{'), ""), no_json(2)},
      {file_of("{\"a\":" + std::string(100000, '['), ""), at_a},
      {file_of(a + R"("data_offsets":[0,8]},"a":1})", eight), "t: has tensor \"a\" twice"},
      {file_of(a + R"("shape":[1],"data_offsets":[0,8]}})", eight), at_a},
      {file_of(a + R"("more":1,"data_offsets":[0,8]}})", eight), at_a},
      {file_of(a + R"("data_offsets":[8]}})", eight), at_a},
      {file_of(a + R"("data_offsets":[0,8,8]}})", eight), at_a},
      {file_of(a + R"("data_offsets":[0,8.0]}})", eight), at_a},
      {file_of(a + R"("data_offsets":[-1,8]}})", eight), at_a},
      {file_of(a + R"("data_offsets":[0,99999999999999999999]}})", eight), at_a},
      {file_of(a + R"("data_offsets":[0,[8]]}})", eight), at_a},
      {file_of(a + R"("data_offsets":"x"}})", eight), at_a},
      {file_of(a + R"("data_offsets":null}})", eight), at_a},
      {file_of(a + R"("data_offsets":[8,0]}})", eight),
       "t: tensor \"a\" has bytes 8 to 0 of the 8 there are"},
      {file_of(a + R"("data_offsets":[0,18446744073709551615]}})", eight),
       "t: tensor \"a\" has bytes 0 to 18446744073709551615 of the 8 there are - is the file cut "
       "short?"},
      {one_tensor("F64", "[2]", eight),
       "t: tensor \"a\" has 8 bytes, its shape 2 of F64 needs another length"},
      {one_tensor("F64", "[4611686018427387904,4]", ""),
       "t: tensor \"a\" has 0 bytes, its shape 4611686018427387904 x 4 of F64 needs another "
       "length"},
      {one_tensor("F64", "[0,18446744073709551615,18446744073709551615]", eight),
       "t: tensor \"a\" has 8 bytes, its shape 0 x 18446744073709551615 x 18446744073709551615 of "
       "F64 needs another length"},
      {one_tensor("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "1234"), at_a},
      {one_tensor("F64", "[-1]", eight), at_a},
      {one_tensor("F64", "[1.0]", eight), at_a},
      {one_tensor("F4", "[1]", eight),
       "t: tensor \"a\" has type F4 (allowed: F64, F32, F16, BF16)"},
      {one_tensor("f64", "[1]", eight),
       "t: tensor \"a\" has type f64 (allowed: F64, F32, F16, BF16)"},
      {one_tensor("I64", "[1]", eight),
       "t: tensor \"a\" has type I64 (allowed: F64, F32, F16, BF16)"},
      {one_tensor("F64", "[1]", eight) + "x", "t: has 9 bytes of numbers, its tensors take 8"},
      {file_of(two("[0,8]", "[4,12]"), sixteen),
       "t: tensor \"b\" begins at byte 4, the one before ends at 8"},
      {file_of(two("[0,8]", "[0,8]"), sixteen),
       "t: tensor \"b\" begins at byte 0, the one before ends at 8"},
      {file_of(two("[8,16]", "[8,16]"), sixteen),
       "t: tensor \"a\" begins at byte 8, the one before ends at 0"},
      {file_of(two("[0,8]", "[9,17]"), sixteen + "x"),
       "t: tensor \"b\" begins at byte 9, the one before ends at 8"},
      {one_tensor("F64", "[1]", bytes_of<double>({1.0 / 0.0})),
       "t: tensor \"a\" has a number that is not finite"},
      {one_tensor("F32", "[1]", bytes_of<float>({0.0f / 0.0f})),
       "t: tensor \"a\" has a number that is not finite"},
      {one_tensor("F16", "[1]", bytes_of<std::uint16_t>({0x7c00})),
       "t: tensor \"a\" has a number that is not finite"},
      {one_tensor("F16", "[1]", bytes_of<std::uint16_t>({0xfe01})),
       "t: tensor \"a\" has a number that is not finite"},
      {one_tensor("BF16", "[1]", bytes_of<std::uint16_t>({0xff80})),
       "t: tensor \"a\" has a number that is not finite"},
  };
  for (const auto& [bytes, line] : cases) {
    EXPECT_EQ(safetensors_refusal(bytes), line) << bytes.substr(0, 200);
  }
}

/// Every prefix, and the file with each of its bytes changed, is read or refused: never worse.
TEST(Safetensors, SurvivesDamage) {
  const std::string good = one_tensor("F32", "[2,1]", bytes_of<float>({1, 2}));
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_NE(safetensors_refusal(good.substr(0, i)), "accepted");
    for (const char byte : {'\0', '9', '"', '}', '\x7f', '\xff'}) {
      std::string damaged = good;
      damaged[i] = byte;
      EXPECT_EQ(safetensors_refusal(damaged).find('\n'), std::string::npos);
    }
  }
}

class SafetensorsFiles : public FolderTest {};

TEST_F(SafetensorsFiles, SayWhatIsWrongWithThem) {
  const std::string path = at("a.safetensors");
  write("a.safetensors", one_tensor("F64", "[1]", bytes_of<double>({0.5})));
  SafetensorsFile file(path);
  EXPECT_EQ(file.read("a"), std::vector<double>{0.5});
  // Cut while it is open.
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_EQ(refusal_line([&] { SafetensorsFile(path).read("a"); }),
            path + ": tensor \"a\" has bytes 0 to 8 of the 7 there are - is the file cut short?");
  EXPECT_EQ(refusal_line([&] { file.read("a"); }), path + ": became shorter while it was read");
  EXPECT_EQ(refusal_line([] { SafetensorsFile("/dev/zero"); }), "/dev/zero: is not a regular file");
}

}  // namespace
}  // namespace headlab
