// SPDX-License-Identifier: Apache-2.0
#include "engine/files/document.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "engine/files/json_writer.h"
#include "engine/testing/refusal.h"

namespace headlab {
namespace {

std::string refusal(const std::string& text) {
  return refusal_line([&] { parse_toml(text, "s.toml"); });
}

Value number(double value) {
  return {value, Location{"--set x=1"}};
}

TEST(document, keeps_the_order_and_the_places_of_the_file) {
  const Value root =
      parse_toml("[zoo]\nbear = 1\nape = [2.5, \"x\"]\n[air]\nb.c = true\n", "s.toml");
  const auto& members = std::get<Value::Members>(root.data);
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].key, "zoo");
  EXPECT_EQ(members[1].key, "air");
  EXPECT_EQ(members[0].location.text(), "s.toml:1:2");
  const Value& zoo = members[0].value;
  EXPECT_EQ(std::get<Value::Members>(zoo.data)[0].key, "bear");
  EXPECT_EQ(std::get<std::int64_t>(zoo.find("bear")->data), 1);
  EXPECT_EQ(zoo.find("bear")->location.text(), "s.toml:2:8");
  const auto& ape = std::get<Value::Array>(zoo.find("ape")->data);
  EXPECT_EQ(std::get<double>(ape[0].data), 2.5);
  EXPECT_EQ(std::get<std::string>(ape[1].data), "x");
  EXPECT_EQ(ape[1].location.text(), "s.toml:3:13");
  EXPECT_TRUE(std::get<bool>(members[1].value.find("b")->find("c")->data));
  EXPECT_EQ(zoo.find("cat"), nullptr);
  EXPECT_EQ(zoo.find("bear")->find("cat"), nullptr);
}

TEST(document, a_section_may_follow_its_own_subsection) {
  const Value root = parse_toml("[a.b]\nx = 1\n[c]\n[a]\ny = 2\n", "s.toml");
  EXPECT_EQ(to_json(root), R"({"a":{"b":{"x":1},"y":2},"c":{}})");
}

TEST(document, text_of_another_encoding) {
  const std::string advice = "is not UTF-8 text - save the file as UTF-8";
  EXPECT_EQ(refusal("name = \"Gr\xf6\xdf"
                    "e\"\n"),
            "s.toml:1:10: " + advice);
  EXPECT_EQ(refusal(std::string("\xff\xfe[\0a\0", 6)),
            "s.toml:1:1: is not UTF-8 text but UTF-16 - save the file as UTF-8");
}

TEST(document, messages_quote_what_is_no_utf8_as_question_marks) {
  EXPECT_EQ(one_line("a\nb\x1b \u00e9"), "a b\\u001b \u00e9");
  EXPECT_EQ(one_line("\xff\xc3_\xe2\x82"), "??_??");
  EXPECT_EQ(one_line("\xc0\xaf\xf5\x80"), "????");
}

TEST(document, kinds) {
  const Value root = parse_toml("a = true\nb = 1\nc = 1.0\nd = ''\ne = []\nf = {}\n", "s.toml");
  EXPECT_STREQ(root.find("a")->kind(), "a boolean");
  EXPECT_STREQ(root.find("b")->kind(), "an integer");
  EXPECT_STREQ(root.find("c")->kind(), "a number");
  EXPECT_STREQ(root.find("d")->kind(), "a string");
  EXPECT_STREQ(root.find("e")->kind(), "an array");
  EXPECT_STREQ(root.find("f")->kind(), "a table");
}

// The words after the place are those of toml++ and change with its version.
TEST(document, syntax_errors_begin_with_the_place_and_are_one_line) {
  const std::pair<std::string, std::string> cases[] = {
      {"a = abc\n", "s.toml:1:5: "},
      {"a = \n", "s.toml:1:5: "},
      {"x = 1\na = \"open\n", "s.toml:2:10: "},
      {"a = 1\na = 2\n", "s.toml:2:5: "},
      {"a = [1,\n", "s.toml:1:9: "},
      {"a = 99999999999999999999\n", "s.toml:1:25: "},
      {"[a\n", "s.toml:1:3: "},
      {"[.a]\n", "s.toml:1:2: "},
      {"a = \u00e9\n", "s.toml:1:5: "},
      {"a = [3, \u041d]\n", "s.toml:1:9: "},
      {"a b = 1\n", "s.toml:1:3: "},
      {"a = \"\x01\"\n", "s.toml:1:6: "},
      {"a = " + std::string(100000, '['), "s.toml:1:261: "},
      {std::string("a = 1\0", 6), "s.toml:1:6: "},
      {"a = \"\xff\"\n", "s.toml:1:"},
  };
  for (const auto& [text, place] : cases) {
    const std::string line = refusal(text);
    EXPECT_EQ(line.substr(0, place.size()), place) << text.substr(0, 40);
    EXPECT_GT(line.size(), place.size());
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST(document, dates_are_refused) {
  EXPECT_EQ(refusal("[a]\nb = [1979-05-27]\n"),
            "s.toml:2:6: a.b: is a date or time, which no parameter takes - write text in quotes");
  EXPECT_EQ(refusal("b = 07:32:00\n"),
            "s.toml:1:5: b: is a date or time, which no parameter takes - write text in quotes");
}

TEST(document, json_keeps_numbers_exactly) {
  const Value root = parse_toml(
      "a = 0.1\nb = 1e22\nc = 9007199254740993\nd = 1.0\ne = -0.0\nf = 5e-324\n"
      "g = 1.7976931348623157e308\nh = \"q\\\"\\n\"\ni = [true, {j = 1}]\n",
      "s.toml");
  const auto json = nlohmann::json::parse(to_json(root));
  EXPECT_EQ(json["a"].get<double>(), 0.1);
  EXPECT_EQ(json["b"].get<double>(), 1e22);
  EXPECT_EQ(json["c"].get<std::int64_t>(), 9007199254740993);
  EXPECT_EQ(json["f"].get<double>(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(json["g"].get<double>(), std::numeric_limits<double>::max());
  EXPECT_EQ(json["h"], "q\"\n");
  EXPECT_NE(to_json(root).find("\"a\":0.1,"), std::string::npos);
  EXPECT_NE(to_json(root).find("\"d\":1.0,\"e\":-0.0"), std::string::npos);
  EXPECT_NE(to_json(root).find("\"i\":[true,{\"j\":1}]"), std::string::npos);
}

TEST(document, toml_text_reads_back_as_the_same_value) {
  for (const std::string text :
       {"0.1", "1.0", "-0.0", "1e+22", "1e-07", "7", "true", "\"a \\\"b\\\" \\\\ \\u000a\"",
        "[1, [2.5, \"x\"]]", "{ law = \"normal\", \"odd key\" = {} }", "[]"}) {
    const Value value = parse_value(text, "x", {"--set"});
    EXPECT_EQ(to_toml(value), text);
    EXPECT_EQ(to_json(parse_value(to_toml(value), "x", {"--set"})), to_json(value));
  }
}

TEST(document, number_text) {
  EXPECT_EQ(number_text(1e6), "1000000");
  EXPECT_EQ(number_text(9007199254740992), "9007199254740992");
  EXPECT_EQ(number_text(1e17), "1e+17");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1e-6), "1e-06");
  EXPECT_EQ(number_text(-2), "-2");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(document, split_path) {
  const std::vector<std::string> three = {"heads", "kernel", "bandwidth"};
  EXPECT_EQ(split_path("heads.kernel.bandwidth", {}), three);
  const std::vector<std::string> two = {"sweep", "data.n"};
  EXPECT_EQ(split_path("sweep.\"data.n\"", {}), two);
  EXPECT_EQ(split_path("sweep.'data.n'", {}), two);
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a b", "\"a", "\"a\"b", "a.\"\""}) {
    EXPECT_THROW(split_path(bad, {}), InvalidInput) << bad;
  }
}

TEST(document, set_value_replaces_and_creates) {
  Value root = parse_toml("[a]\nx = 1\n", "s.toml");
  set_value(root, "a.x", number(2));
  set_value(root, "a.y.z", number(3));
  set_value(root, "b.\"c.d\"", number(4));
  EXPECT_EQ(to_json(root), R"({"a":{"x":2.0,"y":{"z":3.0}},"b":{"c.d":4.0}})");
  EXPECT_EQ(root.find("a")->find("x")->location.text(), "--set x=1");
  EXPECT_EQ(std::get<Value::Members>(root.data)[1].location.text(), "--set x=1");
  const auto& members = std::get<Value::Members>(root.find("a")->data);
  EXPECT_EQ(members[0].location.text(), "--set x=1");
  EXPECT_EQ(std::get<Value::Members>(root.data)[0].location.text(), "s.toml:1:2");
  EXPECT_EQ(refusal_line([&] { set_value(root, "a.x.y", number(5)); }),
            "--set x=1: a.x: is a number and has no y");
}

TEST(document, one_line) {
  EXPECT_EQ(one_line("a\r\nb\tc\x7f"), "a  b c\\u007f");
  EXPECT_EQ(one_line("abcdef", 3), "abc...");
  EXPECT_EQ(one_line("ab\xc3\xa9", 3), "ab...");
}

}  // namespace
}  // namespace headlab
