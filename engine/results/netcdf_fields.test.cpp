// SPDX-License-Identifier: Apache-2.0
#include "engine/results/netcdf_fields.h"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "engine/moments/error_terms.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

/// A result with lists, arrays and names that are taken.
struct Row {
  ErrorTerms<Remainder> terms;
  std::vector<std::pair<std::string, double>> named = {{"a", 1}};
  std::optional<std::uint64_t> known;
  std::string text = "t";

  template <class Visitor>
  void fields(Visitor& visit) const {
    terms.fields(visit);
    visit("queries", terms.queries, "queries", {.item = "query"});
    visit("named", by_name(named), "index", {.item = "index"});
    visit("known", known, "a whole number");
    visit("text", text, "a text");
  }
};

Row row_of(double mse, std::size_t queries, std::size_t heads) {
  Row row;
  row.terms.mse = {mse, mse / 2};
  for (std::size_t q = 0; q < queries; ++q) {
    const double base = mse + 10 * static_cast<double>(q);
    row.terms.queries.push_back({{base, 0.5}, {}, {}});
    for (std::size_t h = 0; h < heads; ++h) {
      row.terms.queries.back().head_bias.push_back({base + static_cast<double>(h), 0.25});
    }
  }
  return row;
}

class NetcdfFieldsTest : public FolderTest {
 protected:
  /// Rows of two tables, written into one group.
  void write(const std::vector<Row>& rows) const {
    FieldTable table({{"row", rows.size()}, {"query", 2}, {"head", 3}, {"head_2", 3}});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const NetcdfFields::Place place{&table, FieldTable::Position{{"row"}, {i}}};
      NetcdfFields visit(place, place);
      rows[i].fields(visit);
    }
    NetcdfImage image;
    const NetcdfGroup root = image.root();
    for (const auto& [axis, length] :
         {std::pair("row", rows.size()), {"query", 2}, {"head", 3}, {"head_2", 3}}) {
      root.define_dimension(axis, length);
    }
    table.write(root);
    image.save(at("f.nc"));
  }
};

TEST_F(NetcdfFieldsTest, NamesJoinTheWayToANumber) {
  Row second = row_of(2, 2, 3);
  second.known = 7;
  write({row_of(1, 1, 2), second});
  const NetcdfInput file(at("f.nc"));
  const NetcdfGroup root = file.root();
  EXPECT_EQ(root.doubles("mse"), (std::vector<double>{1, 2}));
  EXPECT_EQ(root.doubles("mse_remainder"), (std::vector<double>{0.5, 1}));
  EXPECT_TRUE(root.has_variable("mse_query_se"));
  EXPECT_EQ(root.doubles("index_a"), (std::vector<double>{1, 1}));
  EXPECT_EQ(root.integers("known"), (std::vector<std::int64_t>{0, 7}));
  EXPECT_EQ(root.texts("text"), (std::vector<std::string>{"t", "t"}));
  // A query has an mse too, but nothing else has a head_bias.
  EXPECT_EQ(root.shape("query_mse"), (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(root.doubles("query_mse")[3], 12);
  EXPECT_EQ(root.shape("head_bias_remainder"), (std::vector<std::size_t>{2, 2, 3}));
  EXPECT_FALSE(root.has_variable("query_head_bias"));
}

TEST_F(NetcdfFieldsTest, ShorterArraysArePadded) {
  write({row_of(1, 1, 2), row_of(2, 2, 3)});
  const NetcdfInput file(at("f.nc"));
  const std::vector<double> bias = file.root().doubles("head_bias");
  const double none = std::nan("");
  const std::vector<double> expected = {1, 2, none, none, none, none, 2, 3, 4, 12, 13, 14};
  ASSERT_EQ(bias.size(), expected.size());
  for (std::size_t i = 0; i < bias.size(); ++i) {
    EXPECT_TRUE(bias[i] == expected[i] || (std::isnan(bias[i]) && std::isnan(expected[i]))) << i;
  }
}

TEST_F(NetcdfFieldsTest, WhatDoesNotFitIsAnError) {
  EXPECT_THROW(write({row_of(1, 1, 4)}), std::logic_error);
  FieldTable table({{"row", 1}, {"query", 1}});
  table.put("a", {{"row"}, {0}}, {"a number"}, 1.0, true);
  EXPECT_THROW(table.put("a", {{"row"}, {0}}, {"a text"}, std::string("x"), true),
               std::logic_error);
  EXPECT_THROW(table.put("a", {{"row", "query"}, {0, 0}}, {"elsewhere"}, 1.0, true),
               std::logic_error);
  EXPECT_THROW(table.put("b", {{"row"}, {1}}, {"behind the end"}, 1.0, true), std::out_of_range);
}

}  // namespace
}  // namespace headlab
