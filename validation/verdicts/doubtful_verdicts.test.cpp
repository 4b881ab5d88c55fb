// SPDX-License-Identifier: Apache-2.0
// Claims that numbers alone would decide wrongly: events that did not occur, denominators that are
// noise, squares without a variance, float32. Each is left open, at any seed, until enough is seen.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

const std::string replicates = "replicates = 8192";  // unless a world has others

VerdictRow verdict(World world, const std::string& claim, std::uint64_t seed, bool full = false) {
  world.run =
      "seed = " + std::to_string(seed) + "\n" + (world.run.empty() ? replicates : world.run);
  return validate_scenario(world.text() + "[[claim.compare]]\nname = \"claim\"\n" + claim + "\n",
                           {.threads = 2}, {.full = full})
      .rows.at(0);
}
/// Whether the claim is open for `reason` at each of some seeds.
void expect_open(const World& world, const std::string& claim, const std::string& reason,
                 std::uint64_t seeds = 6) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const VerdictRow row = verdict(world, claim, seed);
    EXPECT_EQ(row.verdict, Verdict::unresolved) << claim << ", seed " << seed;
    EXPECT_NE(row.open.find(reason), std::string::npos) << row.open;
  }
}
void expect(const World& world, const std::string& claim, Verdict right, bool full = false) {
  const VerdictRow row = verdict(world, claim, 1, full);
  EXPECT_EQ(row.verdict, right) << claim << ": " << row.open;
}

const std::string fixed = "\nfixed_design = true";  // behind the noise, the last key of [data]
const std::string carried = "carried by ";

/// 1 beyond 3.5, which one of 4299 points is: a bias of 2.326e-4.
World rare_step() {
  return {.regression = R"({ law = "step", direction = [1], threshold = 3.5 })"};
}

TEST(DoubtfulVerdicts, AnEventThatDidNotOccurDecidesNothing) {
  const World world = rare_step();
  expect_open(world, "of = { figure = \"head_bias[0,0]\" }\nequals = 0\nmargin = 7.75e-5", carried);
  expect_open(world, "of = { figure = \"head_bias[0,0]\" }\nequals = 2.326e-4\nmargin = 7.75e-5",
              carried);
  expect_open(world, "of = { figure = \"head_variance_mean\" }\nat_most = 0.0101\nmargin = 5e-5",
              carried);
}

TEST(DoubtfulVerdicts, AnEventThatOccursOftenEnoughDecides) {
  const World world = rare_step();
  const std::string bias = "of = { figure = \"head_bias[0,0]\" }\n";
  expect(world, bias + "equals = 2.326e-4\nmargin = 1e-4", Verdict::supported, true);
  expect(world, bias + "equals = 0\nmargin = 1e-5", Verdict::refuted, true);
}

TEST(DoubtfulVerdicts, TheLargestValueOfAnEventBoundsWhatWasNotSeen) {
  // 4.6 / 8192 of the training sets at most, and 2 in each.
  expect(rare_step(), "of = { figure = \"head_bias[0,0]\" }\nequals = 0\nmargin = 0.01",
         Verdict::supported);
}

TEST(DoubtfulVerdicts, RareBumpsAndLevelsOfNoisyWeightsAreOpen) {
  World bump{.regression =
                 R"({ law = "bumps", heights = [50], centres = [[4.5]], widths = [0.1] })"};
  expect_open(bump, "of = { figure = \"mse\" }\nat_most = 0.0101\nmargin = 1e-4", carried);
  // The noise that is integrated varies with the weights in every training set.
  World noisy{.n = "3",
              .regression = R"({ law = "step", direction = [1], threshold = 4.2, height = 30 })"};
  expect_open(noisy, "of = { figure = \"head_variance_mean\" }\nat_most = 0.006\nmargin = 1e-3",
              carried);
}

TEST(DoubtfulVerdicts, DifferencesThatAreRoundingButForRareOnesAreOpen) {
  World world{.n = "50",
              .noise = R"({ law = "normal", sd = 1.0 })",
              .heads =
                  "count = 1\ndim = 1\nsubspaces = { law = \"aligned\" }\n"
                  "mechanism = { keep = { top = 2 } }",
              .kernel = R"({ law = "epanechnikov", bandwidth = 0.03 })",
              .points = "[[2.0]]",
              .sweep = "\"heads.mechanism.keep.top\" = [2, 50]"};
  const auto at = [](const char* top) {
    return std::string("{ figure = \"mse\", at = { \"heads.mechanism.keep.top\" = ") + top + " } }";
  };
  expect_open(world, "equal = [" + at("2") + ", " + at("50") + "]\nmargin = 1e-5", carried);
}

TEST(DoubtfulVerdicts, WhatHoldsByConstructionIsDecided) {
  // Heads that are alike, a fixed design, noise alone.
  World alike{.n = "30",
              .regression = R"({ law = "linear", coefficients = [1] })",
              .heads = "count = 2\ndim = 1\nsubspaces = { law = \"aligned\" }"};
  expect(alike, "of = { figure = \"output_correlation\" }\nequals = 1\nmargin = 1e-5",
         Verdict::supported);
  expect(alike,
         "equal = [{ figure = \"head_bias[0,0]\" }, { figure = \"head_bias[0,1]\" }]\n"
         "margin = 1e-5",
         Verdict::supported);
  expect(
      alike,
      "equal = [{ figure = \"head_covariance[0,0,1]\" }, { figure = \"head_covariance[0,1,1]\" }]\n"
      "margin = 1e-5",
      Verdict::supported);
  World given = alike;
  given.noise += fixed;
  expect(given, "of = { figure = \"mse\" }\nequals_theory = \"exact\"\nmargin = 1e-4",
         Verdict::supported);
  World noise;
  expect(noise, "of = { figure = \"head_bias[0,0]\" }\nequals = 0\nmargin = 0", Verdict::supported);
  World apart{.n = "20",
              .heads =
                  "count = 2\ndim = 1\nsubspaces = { law = \"aligned\" }\n"
                  "mechanism = { window = 10, skip = [0, 10] }"};
  expect(apart, "of = { figure = \"head_covariance_mean\" }\nequals = 0\nmargin = 0",
         Verdict::supported);
}

TEST(DoubtfulVerdicts, RatiosOverNoiseAreOpen) {
  const std::string open = "denominator";
  World world{.n = "5",
              .design = R"({ law = "normal", dim = 2 })",
              .regression = R"({ law = "linear", coefficients = [1, 1] })",
              .noise = R"({ law = "normal", sd = 0.7 })",
              .heads = "count = 2\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
              .kernel = R"({ law = "gaussian", bandwidth = 0.6 })",
              .points = "[[0.002, 0.002], [-0.002, 0.002]]",
              .run = "replicates = 65536"};
  const std::string bias = "{ figure = \"head_bias[0,0]\" }",
                    other = "{ figure = \"head_bias[1,0]\" }";
  expect_open(world, "ratio = [" + bias + ", " + other + "]\nequals = -1\nmargin = 0.5", open);
  expect_open(world, "ratio = [" + bias + ", " + other + "]\nequals = 1\nmargin = 0.5", open);
  expect_open(world, "ratio = [" + bias + ", " + other + "]\nat_most = 3\nmargin = 0.5", open);
  expect_open(world, "equal = [" + bias + ", " + other + "]\nmargin = { relative = 0.5 }", open);
  expect_open(world, "less = " + bias + "\nthan = " + other + "\nmargin = { relative = 0.5 }",
              open);
}

TEST(DoubtfulVerdicts, SharesOfZeroAreOpenInTheirOwnWords) {
  const std::string open = "relative to a figure that is exactly 0";
  const std::string mse = "{ figure = \"mse\" }", zero = "{ figure = \"head_bias[0,0]\" }";
  const World noise;
  expect_open(noise, "equal = [" + mse + ", " + zero + "]\nmargin = { relative = 0.5 }", open);
  expect_open(noise, "less = " + mse + "\nthan = " + zero + "\nmargin = { relative = 0.5 }", open);
  expect(noise, "less = " + zero + "\nthan = " + mse + "\nmargin = { relative = 0.5 }",
         Verdict::supported);
}

TEST(DoubtfulVerdicts, RatiosOverWhatIsKnownAreDecided) {
  World world{.n = "20",
              .regression = R"({ law = "linear", coefficients = [1] })",
              .points = "[[1.0], [-1.0]]",
              .run = "replicates = 65536"};
  const std::string ratio =
      "ratio = [{ figure = \"head_bias[0,0]\" }, { figure = \"head_bias[1,0]\" }]\n";
  expect(world, ratio + "equals = -1\nmargin = 0.1", Verdict::supported);
  expect(world, ratio + "equals = 1\nmargin = 0.1", Verdict::refuted);
  expect(world, ratio + "at_most = 0\nmargin = 0.1", Verdict::supported);
  expect(world, ratio + "at_least = 0.5\nmargin = { relative = 0.1 }", Verdict::refuted);
}

TEST(DoubtfulVerdicts, OrderIsThatOfNumbersHoweverASweepIsWritten) {
  World world{.n = "40", .noise = R"({ law = "normal", sd = 1.0 })"};
  const auto claim = [](const char* direction) {
    return std::string(
               "monotone = { figure = \"head_variance_mean\", in = "
               "\"heads.kernel.bandwidth\", direction = \"") +
           direction + "\" }\nmargin = 0";
  };
  for (const char* values : {"[0.5, 0.3, 0.8]", "[0.3, 0.5, 0.8]", "[0.8, 0.5, 0.3]"}) {
    world.sweep = std::string("\"heads.kernel.bandwidth\" = ") + values;
    expect(world, claim("decreasing"), Verdict::supported);
    expect(world, claim("increasing"), Verdict::refuted);
  }
  world.sweep =
      R"("heads.kernel" = [{ law = "gaussian", bandwidth = 1 }, { law = "laplace", bandwidth = 1 }])";
  EXPECT_THROW(verdict(world,
                       "monotone = { figure = \"mse\", in = \"heads.kernel\", direction = "
                       "\"increasing\" }\nmargin = 0",
                       1),
               InvalidInput);
}

TEST(DoubtfulVerdicts, SquaresWithoutAVarianceAreOpen) {
  const std::string open = "squares have no variance";
  const std::string claim =
      "of = { figure = \"head_variance_mean\" }\nat_most = 0.9\nmargin = 0.05";
  for (const char* df : {"2.5", "3", "4"}) {
    World world{.noise = std::string(R"({ law = "student_t", sd = 1.0, df = )") + df + " }",
                .run = replicates + "\nestimator = \"plain\""};
    expect_open(world, claim, open, 2);
    world.run = replicates;
    expect(world, "of = { figure = \"head_variance_mean\" }\nat_most = 1.1\nmargin = 0.05",
           Verdict::supported);
  }
  // Of a regression that grows where the design has such tails, whatever is integrated.
  World far{.design = R"({ law = "student_t", dim = 1, df = 3 })",
            .regression = R"({ law = "linear", coefficients = [1] })"};
  expect_open(far, "of = { figure = \"mse\" }\nat_most = 2\nmargin = 0.1", open, 2);
  far.noise = R"({ law = "heteroscedastic", sd = 0.1, slope = 1, direction = [1] })";
  far.regression = R"({ law = "zero" })";
  expect_open(far, "of = { figure = \"mse\" }\nat_most = 2\nmargin = 0.1", open, 2);
  far.n = "50";
  EXPECT_EQ(verdict(far, "of = { figure = \"mse\" }\nat_most = 20\nmargin = 0.1", 1).open, "");
}

TEST(DoubtfulVerdicts, SquaresWithoutAKurtosisAreJudgedByThreeTimesTheirSkewness) {
  const std::string claim = "of = { figure = \"head_variance_mean\" }\nat_most = 1.5\nmargin = 0.1";
  World world{.run = replicates + "\nestimator = \"plain\""};
  double skewness = 0;
  for (const char* df : {"8.001", "8"}) {
    world.noise = std::string(R"({ law = "student_t", sd = 1.0, df = )") + df + " }";
    const VerdictRow row = verdict(world, claim, 3);
    EXPECT_EQ(row.verdict, Verdict::supported);
    const double seen = row.decisive.effect.skewness;
    if (skewness != 0) {
      EXPECT_NEAR(seen / skewness, 3, 0.01);
    }
    skewness = seen;
  }
}

TEST(DoubtfulVerdicts, RoundingRefutesNothing) {
  World world{.n = "30",
              .regression = R"({ law = "linear", coefficients = [1] })",
              .noise = R"({ law = "normal", sd = 1.0 })" + fixed,
              .points = "[[0.5]]"};
  for (const char* figure : {"head_variance_mean", "mse", "head_bias[0,0]"}) {
    expect_open(world,
                std::string("of = { figure = \"") + figure +
                    "\" }\nequals_theory = \"exact\"\nmargin = 1e-12",
                "rounding", 2);
  }
}

TEST(DoubtfulVerdicts, UnitAndControlsThatDoNotFitAreRejected) {
  World world{.n = "20",
              .noise = R"({ law = "heteroscedastic", sd = 1, slope = 1, direction = [1] })"};
  const std::string claim = "of = { figure = \"head_variance_mean\" }\nat_most = 3\nmargin = 0.1";
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "another variance at every point",
                      refusal_line([&] { verdict(world, claim + "\nunit = \"s2/n\"", 1); }));
  world.noise = R"({ law = "normal", sd = 1.0 })";
  world.run = replicates + "\ncontrols = \"exact\"";
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "verdicts judge runs without controls",
                      refusal_line([&] { verdict(world, claim, 1); }));
}

}  // namespace
}  // namespace headlab
