// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/precision.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"

namespace headlab {
namespace {

std::string until_refusal(const std::string& text) {
  return refusal_line([&] { require_figures(parse_until(text), {"share"}); });
}

TEST(Precision, TargetsAreReadAsWritten) {
  const std::string text =
      "mse=1%,output_correlation=0.005,mse@#3=0.3%,head_covariance[0,1,2]@#10=1e-05";
  const std::vector<PrecisionTarget> targets = parse_until(text);
  EXPECT_EQ(
      targets,
      (std::vector<PrecisionTarget>{
          {.figure = FigureName{"mse"}, .limit = 1, .relative = true},
          {.figure = FigureName{"output_correlation"}, .limit = 0.005},
          {.figure = FigureName{"mse"}, .condition = 3, .limit = 0.3, .relative = true},
          {.figure = FigureName{"head_covariance", {0, 1, 2}}, .condition = 10, .limit = 1e-5}}));
  EXPECT_EQ(parse_until(until_text(targets)), targets);
}

TEST(Precision, WhatIsNoTargetIsRefused) {
  for (const std::string text :
       {"mse", "mse=", "mse=0", "mse=0%", "mse=-1%", "mse=nan", "mse=inf", "mse=nan%", "mse=101%",
        "mse=1%%", "mse@=1%", "mse@#=1%", "mse@#-1=1%", "mse@#3x=1%", "mse=1e400", ""}) {
    EXPECT_EQ(until_refusal(text),
              "--until: \"" + text +
                  "\" does not fit (allowed: FIGURE=MCSE or FIGURE=SHARE%, numbers above 0 and "
                  "below 100 %; FIGURE@#3 for condition #3 alone)");
  }
  EXPECT_EQ(until_refusal("mse = 1 %"), "accepted");
  EXPECT_TRUE(until_refusal("mse@3=1%").ends_with(" - write mse@#3=1%"));
  EXPECT_TRUE(until_refusal("mse<=1%").ends_with(" - write mse=1%"));
  EXPECT_TRUE(until_refusal("mse=1%,").starts_with("--until: \"\" does not fit"));
  EXPECT_TRUE(until_refusal("head_bias[0,0=1").starts_with("--until: \"head_bias[0,0\" does"));
  EXPECT_EQ(until_refusal("mse=99%"), "accepted");
  EXPECT_EQ(until_refusal("share=0.1,difference_share=0.1"), "accepted");
  EXPECT_NE(until_refusal("shares=0.1"), "accepted");
  EXPECT_NE(until_refusal("share=1%"), "accepted");
  EXPECT_NE(until_refusal("difference_mse=1%"), "accepted");
  EXPECT_NE(until_refusal("difference_query_mse[0]=1"), "accepted");
}

TEST(Precision, RatiosAreStandardErrorsOverTargets) {
  const double undefined = std::nan("");
  const PrecisionTarget relative{.figure = FigureName{"mse"}, .limit = 2, .relative = true};
  const PrecisionTarget absolute{.figure = FigureName{"mse"}, .limit = 0.5};
  EXPECT_DOUBLE_EQ(precision_ratio({10, 0.1}, relative), 0.5);
  EXPECT_DOUBLE_EQ(precision_ratio({-10, 0.1}, absolute), 0.2);
  EXPECT_EQ(precision_ratio({0, 0}, relative), 0);
  EXPECT_EQ(precision_ratio({-1, 0.1}, relative), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(precision_ratio({undefined, 0.1}, absolute)));
  EXPECT_TRUE(std::isnan(precision_ratio({1, undefined}, absolute)));
}

TEST(Precision, DifferencesAreOfConditionsThatHaveAReference) {
  ConditionEstimates estimates;
  ErrorTerms<Estimate> difference;
  estimates.mse = {1, 0.5};
  difference.mse = {0.1, 0.02};
  const auto targets = parse_until("difference_mse=0.01");
  EXPECT_EQ(until_text(targets), "difference_mse=0.01");
  Look look;
  look.add(targets, 0, estimates);
  EXPECT_EQ(look.ratio, 0);
  EXPECT_EQ(look.undefined, 0U);
  look.add(targets, 1, estimates, &difference);
  EXPECT_EQ(look.ratio, 2);
  EXPECT_EQ(look.condition, 1U);
}

TEST(Precision, ALookHasTheLargestRatioAndCountsWhatIsUndefined) {
  ConditionEstimates estimates;
  estimates.mse = {1, 0.02};
  estimates.output_correlation = {0.5, 0.003};
  const auto targets = parse_until("mse=1%,output_correlation=0.001,mse@#1=0.1%,index_output=1");
  Look look{.replicates = 1024};
  look.add(targets, 0, estimates);
  EXPECT_EQ(look, (Look{1024, 3, 0, 1, 1}));
  EXPECT_FALSE(look.met());
  look.add(targets, 1, estimates);
  EXPECT_EQ(look, (Look{1024, 20, 1, 2, 2}));
}

TEST(Precision, LooksFillWholeNodes) {
  for (std::uint64_t replicates = 250; replicates < 70000; replicates += 7) {
    const std::uint64_t whole = whole_nodes_from(replicates);
    EXPECT_GE(whole, replicates);
    EXPECT_EQ(whole % node_replicates({}, whole), 0u);
    EXPECT_LE(static_cast<double>(whole), 1.017 * static_cast<double>(replicates) + 8);
  }
  EXPECT_EQ(whole_nodes_from(first_look), first_look);
}

TEST(Precision, ALookIsWhereTheStandardErrorMakesTheTargetLikely) {
  // 1.5^2 x 1.05 x 1024 = 2419.2: nodes of 32 there.
  EXPECT_EQ(next_look(1024, 1.5), 2432u);
  EXPECT_EQ(next_look(1024, 1.001), 1136u);  // at least 1.1 times
  EXPECT_EQ(next_look(1024, 100), 4096u);    // at most 4 times
  EXPECT_EQ(next_look(1024, std::numeric_limits<double>::infinity()), 4096u);
}

TEST(Precision, EndsWhereTargetsAreMetOrThereIsNoMore) {
  Precision precision{.targets = parse_until("mse=1%"), .most = 3000};
  EXPECT_EQ(precision.goal(), 1024u);
  EXPECT_FALSE(precision.done());
  precision.looks.push_back({.replicates = 1024, .ratio = 3});
  EXPECT_EQ(precision.goal(), 3000u);
  precision.looks.push_back({.replicates = 3000, .ratio = 1.2});
  EXPECT_TRUE(precision.done());
  EXPECT_FALSE(precision.met());
  EXPECT_EQ(precision.goal(), 3000u);
  // With more replicates the look at 3000 would not have been.
  precision.most = 10000;
  precision.drop_early_look();
  EXPECT_EQ(precision.goal(), 4096u);
  precision.drop_early_look();  // the one at 1024 came when it was due
  EXPECT_EQ(precision.goal(), 4096u);
  precision.looks.push_back({.replicates = 4096, .ratio = 0.99});
  EXPECT_TRUE(precision.done());
  EXPECT_TRUE(precision.met());
  // Replicates do not define what is undefined.
  precision.looks.back().undefined = 1;
  EXPECT_TRUE(precision.done());
  EXPECT_FALSE(precision.met());
}

}  // namespace
}  // namespace headlab
