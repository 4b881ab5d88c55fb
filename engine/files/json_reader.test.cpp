// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_reader.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/json_writer.h"

namespace headlab {
namespace {

/// What takes every path of a reader.
constexpr const char* document =
    R"( {"z": [1, -2, 0, -0.0, 2.50, 1e-7, 1e22, 123456789012345678, 0.1], "b": {"y": {}, "x": []},)"
    R"( "large": [9223372036854775807, 9223372036854775808, 18446744073709551615,)"
    R"( 18446744073709551616, -9223372036854775808, -9223372036854775809],)"
    R"( "a": [null, true, false, "", "\"\\\/\b\f\n\r\t\u0001\u00e9\ud83d\ude00 é 😀"],)"
    R"( "": [[[{"k": {"l": "m"}}]]]} )";

std::string in_order_of_file(std::string_view text) {
  return to_json(parse_json(text, MemberOrder::of_file).value());
}

TEST(JsonReader, KeepsEveryBitAsNlohmannJsonDoes) {
  EXPECT_EQ(to_json(parse_json(document).value()), nlohmann::json::parse(document).dump());
  const auto in_order = nlohmann::ordered_json::parse(document);
  EXPECT_EQ(in_order_of_file(document), in_order.dump());
  const Value tree = parse_json(document, MemberOrder::of_file).value();
  EXPECT_EQ(to_json(tree, {.indent = 1}), in_order.dump(1));
  EXPECT_EQ(to_json(tree, {}), in_order.dump(2));
  EXPECT_EQ(to_json(tree, {.lines = 0, .ascii = true}), in_order.dump(-1, ' ', true));
}

TEST(JsonReader, TakesTheLastOfTheValuesOfAKey) {
  const char* text = R"({"b": 1, "a": [2], "b": {"c": 3, "c": 4}, "a": 5, "b": 6})";
  EXPECT_EQ(to_json(parse_json(text).value()), R"({"a":5,"b":6})");
  EXPECT_EQ(in_order_of_file(text), R"({"b":6,"a":5})");
  EXPECT_EQ(in_order_of_file(R"({"b": 1, "a": 2, "b": [3, 4]})"), R"({"b":[3,4],"a":2})");
}

TEST(JsonReader, ReadsNothingElse) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           R"({"a" 1})",
                           R"({"a": 1} x)",
                           R"({"a": 1}{})",
                           "nul",
                           "01",
                           "1.",
                           "+1",
                           "NaN",
                           "-Infinity",
                           "1e999",
                           "'a'",
                           "\"\xff\"",
                           "\"\xed\xa0\x80\"",
                           "\"\n\"",
                           R"("\ud83d")",
                           R"("\x")",
                           "// a\n1"}) {
    EXPECT_FALSE(parse_json(text)) << text;
    EXPECT_FALSE(nlohmann::json::accept(text)) << text;
  }
  EXPECT_TRUE(parse_json(" 1 "));
}

TEST(JsonReader, ReadsSoManyLevelsAndNoMore) {
  const auto nested = [](std::size_t levels, const char* open, const char* close) {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += open;
    text += "1";
    for (std::size_t i = 0; i < levels; ++i) text += close;
    return text;
  };
  EXPECT_TRUE(parse_json(nested(max_json_depth, "[", "]")));
  EXPECT_TRUE(parse_json(nested(max_json_depth, R"({"a":)", "}")));
  EXPECT_FALSE(parse_json(nested(max_json_depth + 1, "[", "]")));
  EXPECT_FALSE(parse_json(nested(max_json_depth + 1, R"({"a":)", "}")));
  EXPECT_FALSE(parse_json(nested(1000000, "[", "]")));
  // Of what is left out too: it is not JSON that headlab writes.
  const KeepItem none = [](std::string_view, std::size_t) { return false; };
  EXPECT_FALSE(parse_json(nested(max_json_depth + 1, "[", "]"), MemberOrder::by_key, none));
  EXPECT_TRUE(parse_json(nested(max_json_depth, "[", "]"), MemberOrder::by_key, none));
}

TEST(JsonReader, LeavesItemsOut) {
  const char* text =
      R"({"a": [1, {"a": [2]}, [3, {}], 4], "b": {"a": [5]}, "c": [6, 7, 8], "d": 9})";
  std::string asked;
  const auto kept = parse_json(text, MemberOrder::by_key, [&](std::string_view key, std::size_t i) {
    asked += std::string(key) + std::to_string(i) + " ";
    return key == "a" ? i == 3 : i != 1;
  });
  EXPECT_EQ(to_json(kept.value()), R"({"a":[4],"b":{"a":[5]},"c":[6,8],"d":9})");
  EXPECT_EQ(asked, "a0 a1 a2 a3 c0 c1 c2 ");
}

TEST(JsonReader, AsksATreeThatMayLackAnything) {
  const Value tree =
      parse_json(R"({"n": 2, "x": 0.5, "t": "a", "l": [1], "no": -1, "y": true, "f": false})")
          .value();
  EXPECT_EQ(number_of(member(tree, "n")), 2);
  EXPECT_EQ(number_of(member(tree, "x")), 0.5);
  EXPECT_EQ(text_of(member(tree, "t")), "a");
  EXPECT_EQ(words_of(member(tree, "t")), "a");
  EXPECT_EQ(words_of(member(tree, "l")), "[1]");
  EXPECT_EQ(items_of(member(tree, "l")).size(), 1u);
  EXPECT_EQ(members_of(tree).size(), 7u);
  EXPECT_EQ(count_of(member(tree, "n")), 2u);
  EXPECT_EQ(count_of({std::numeric_limits<std::uint64_t>::max(), {}}),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(count_of(member(tree, "no")));
  EXPECT_FALSE(count_of(member(tree, "x")));
  EXPECT_TRUE(is_true(member(tree, "y")));
  EXPECT_FALSE(is_true(member(tree, "f")));
  EXPECT_FALSE(is_true(member(tree, "n")));
  for (const Value* other : {&member(tree, "none"), &member(member(tree, "l"), "n"), &tree}) {
    EXPECT_TRUE(std::isnan(number_of(*other)));
    EXPECT_EQ(text_of(*other), "");
    EXPECT_TRUE(items_of(*other).empty());
    EXPECT_FALSE(count_of(*other));
  }
}

TEST(JsonReader, RefusesATreeThatLacksSomething) {
  Value tree = parse_json(R"({"a": [1, "x"]})").value();
  EXPECT_EQ(as<std::string>(required(required(tree, "a"), 1)), "x");
  as<Value::Array>(required(tree, "a")).pop_back();
  EXPECT_EQ(to_json(tree), R"({"a":[1]})");
  EXPECT_THROW(required(tree, "b"), JsonMismatch);
  EXPECT_THROW(required(required(tree, "a"), "b"), JsonMismatch);
  EXPECT_THROW(required(required(tree, "a"), 1), JsonMismatch);
  EXPECT_THROW(required(tree, 1), JsonMismatch);
  EXPECT_THROW(as<bool>(required(tree, "a")), JsonMismatch);
}

TEST(Value, IsEqualByWhatItSays) {
  const auto same = [](const char* a, const char* b) {
    return parse_json(a, MemberOrder::of_file) == parse_json(b, MemberOrder::of_file);
  };
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("[1, {\"a\": 2}]", "[1.0, {\"a\": 2.0}]"));
  EXPECT_TRUE(same("18446744073709551615", "18446744073709551615"));
  EXPECT_FALSE(same("18446744073709551615", "18446744073709551614"));
  EXPECT_FALSE(same("9007199254740993", "9007199254740992"));
  EXPECT_FALSE(same("1", "true"));
  EXPECT_FALSE(same("0", "null"));
  EXPECT_FALSE(same("1", "\"1\""));
  EXPECT_FALSE(same("[]", "{}"));
  EXPECT_FALSE(same("{\"a\": 1}", "{\"b\": 1}"));
  EXPECT_FALSE(same("{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE((Value{nan, {}} == Value{nan, {}}));
  EXPECT_EQ(parse_toml("a = 1", "a"), parse_toml("\n\n  a = 1", "b"));
}

}  // namespace
}  // namespace headlab
