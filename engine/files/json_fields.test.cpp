// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_fields.h"

#include <limits>

#include <gtest/gtest.h>

#include "engine/moments/error_terms.h"

namespace headlab {
namespace {

/// Fields of every kind.
struct Kinds {
  ErrorTerms<Remainder> terms;
  std::vector<std::pair<std::string, double>> named = {{"a", 1}, {"b", 2}};
  std::vector<Remainder> vector = {{1, 0.5}, {2, 0.25}};

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("mse", terms.mse, "a result");
    visit("mse_query_se", 0.5, "a part of the one before", {.part_of = "mse"});
    visit("hidden", 1, "in other files only", {.in_json = false});
    visit("vector", shaped(vector), "numbers of an array", {.axes = "head"});
    visit("matrix", shaped(vector, {1, 2}), "rows", {.axes = "head head_2"});
    visit("list", vector, "results one after the other", {.item = "one"});
    visit("named", by_name(named), "members", {.item = "one"});
    visit("none", std::optional<int>(), "unknown");
    visit("some", std::optional(3), "known");
    visit("text", "\"x\"\n\xff", "a text with a byte that is not UTF-8");
    visit("json", JsonText{"[1]"}, "JSON already");
    visit("true", true, "a truth value");
    visit("large", std::uint64_t{18446744073709551615u}, "a whole number");
    visit("infinite", std::numeric_limits<double>::infinity(), "not a JSON number");
    visit("empty", std::vector<int>(), "an array without members");
  }
};

TEST(JsonFields, WritesEveryKindOfField) {
  Kinds kinds;
  kinds.terms.mse = {0.1, 1e-5};
  EXPECT_EQ(json_text(kinds, 0),
            R"({"mse":{"value":0.1,"remainder":1e-05,"query_se":0.5},)"
            R"("vector":[1.0,2.0],"vector_remainder":[0.5,0.25],)"
            R"("matrix":[[1.0,2.0]],"matrix_remainder":[[0.5,0.25]],)"
            R"("list":[{"value":1.0,"remainder":0.5},{"value":2.0,"remainder":0.25}],)"
            R"("named":{"a":1.0,"b":2.0},"none":null,"some":3,"text":"\"x\"\n�","json":[1],)"
            R"("true":true,"large":18446744073709551615,"infinite":null,"empty":[],)"
            // sha256sum of the text before
            R"("sha256":"d1e395e2ef23718b13eb202c678d0235c52bf75a249cfa5678a45d41e1bc4887"})"
            "\n");
}

TEST(JsonFields, LeavesMatricesOutWhereAsked) {
  std::string text;
  JsonWriter out([&](std::string_view part) { text += part; }, {.lines = 0});
  JsonFields(out, false).write(Kinds());
  out.finish();
  EXPECT_NE(text.find(R"("vector":[1.0,2.0])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("matrix":null,"matrix_remainder":null)"), std::string::npos) << text;
}

TEST(JsonWriter, HandsLongTextsOverPartByPart) {
  std::size_t parts = 0, size = 0;
  JsonWriter out([&](std::string_view part) {
    ++parts;
    size += part.size();
  });
  out.begin_array();
  for (int i = 0; i < 100000; ++i) out.number(std::int64_t{1});
  out.end_array();
  out.finish();
  EXPECT_GT(parts, 4u);
  EXPECT_EQ(size, 100000 * std::string("\n  1,").size() - 1 + std::string("[\n]\n").size());
}

}  // namespace
}  // namespace headlab
