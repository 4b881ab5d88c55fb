// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/figure_name.h"

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"

namespace headlab {
namespace {

/// Terms whose numbers all differ: two queries, two heads.
ErrorTerms<double> numbered_terms() {
  ErrorTerms<double> terms;
  double next = 1;
  for (double* number : all_numbers<double>(terms)) *number = next++;
  for (int q = 0; q < 2; ++q) {
    QueryErrorTerms<double>& at = terms.queries.emplace_back();
    at.mse = next++;
    for (int h = 0; h < 2; ++h) at.head_bias.push_back(next++);
    for (int c = 0; c < 4; ++c) at.head_covariance.push_back(next++);
  }
  return terms;
}

std::string refusal_of(const std::string& text) {
  return refusal_line([&] { parse_figure("--x", text); });
}

TEST(FigureName, EveryNumberIsFoundByItsName) {
  const ErrorTerms<double> terms = numbered_terms();
  const auto value = [&](const std::string& text) {
    const FigureName name = parse_figure("--x", text);
    EXPECT_EQ(name.text(), text);
    const double* number = find_figure<double>(terms, name);
    return number ? *number : -1;
  };
  EXPECT_EQ(value("mse"), terms.mse);
  EXPECT_EQ(value("output_correlation"), terms.output_correlation);
  EXPECT_EQ(value("index_output"), terms.output_index);
  EXPECT_EQ(value("index_weights"), terms.weights_index);
  EXPECT_EQ(value("query_mse[1]"), terms.queries[1].mse);
  EXPECT_EQ(value("head_bias[1,0]"), terms.queries[1].head_bias[0]);
  EXPECT_EQ(value("head_covariance[0,1,0]"), terms.queries[0].head_covariance[2]);
  // Places that are not there.
  EXPECT_EQ(value("query_mse[2]"), -1);
  EXPECT_EQ(value("head_bias[0,2]"), -1);
  EXPECT_EQ(value("head_covariance[0,0,2]"), -1);
  ErrorTerms<double> aggregate = terms;
  aggregate.queries[0].head_covariance.clear();
  EXPECT_EQ(find_figure<double>(aggregate, parse_figure("--x", "head_covariance[0,1,0]")), nullptr);
}

TEST(FigureName, AllKindsHaveANumber) {
  const ErrorTerms<double> terms = numbered_terms();
  std::vector<std::string> positive;
  for (const FigureKind& kind : figure_kinds()) {
    const FigureName first{kind.name, std::vector<std::size_t>(kind.axes.size(), 0)};
    EXPECT_NE(find_figure<double>(terms, first), nullptr) << kind.name;
    if (kind.positive) positive.push_back(kind.name);
  }
  EXPECT_EQ(positive,
            (std::vector<std::string>{"mse", "variance_term", "head_variance_mean", "query_mse"}));
}

TEST(FigureName, WhatIsNoFigureIsRefused) {
  EXPECT_TRUE(refusal_of("output_corelation")
                  .starts_with("--x: figure \"output_corelation\" is "
                               "unknown (allowed: mse, "));
  EXPECT_TRUE(refusal_of("output_corelation").ends_with(" - did you mean \"output_correlation\"?"));
  const std::string bias = "\" does not fit (allowed: head_bias[query, head], numbers from 0)";
  for (const std::string text :
       {"head_bias", "head_bias[0]", "head_bias[0,1,2]", "head_bias[0,1", "head_bias[0,1]x",
        "head_bias[-1,0]", "head_bias[0,]", "head_bias[]", "head_bias[0,1]]", "head_bias[a,b]"}) {
    EXPECT_EQ(refusal_of(text), "--x: \"" + text + bias);
  }
  EXPECT_EQ(refusal_of("mse[0]"), "--x: \"mse[0]\" does not fit (allowed: mse)");
}

}  // namespace
}  // namespace headlab
