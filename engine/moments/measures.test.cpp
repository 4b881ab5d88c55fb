// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/measures.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "engine/moments/estimates.h"
#include "engine/moments/measured_terms.h"
#include "engine/testing/refusal.h"

namespace headlab {
namespace {

const std::vector<double> two_weights = {0.5, 0.5};
const std::vector<double> two_truths = {0.0, 1.0};

Measures measures_of(const std::string& lines) {
  return read_measures(parse_toml("[measures]\n" + lines, "m.toml"));
}

/// Two heads at two queries, drawn plainly, with something in common.
MomentTree drawn_tree(std::uint64_t replicates) {
  MomentTree tree({.queries = 2, .heads = 2, .conditional = false});
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  while (tree.count() < replicates) {
    const int count = tree.count() < first_leaf ? 1 : leaf_replicates;
    std::vector<double> values;
    for (int r = 0; r < count; ++r) {
      const double common = normal(random);
      for (int f = 0; f < 4; ++f) values.push_back(0.3 + 0.5 * common + normal(random));
    }
    Moments moments;
    leaf_moments(tree.layout(), values, count, moments);
    tree.append(std::move(moments));
  }
  return tree;
}

const Estimate& measured_number(const ConditionEstimates& estimates, const std::string& name) {
  const Estimate* found = find_figure<Estimate>(estimates, parse_figure("--x", name, {name}));
  EXPECT_NE(found, nullptr) << name;
  static const Estimate none;
  return found ? *found : none;
}

TEST(Measures, AreEvaluatedWithEachNodeLeftOut) {
  const MomentTree tree = drawn_tree(512);
  const Measures measures = measures_of(
      "same = \"mse\"\nshare = \"covariance_term / mse\"\ntwice = \"2 * share\"\n"
      "bias = \"head_bias[1,0]\"\npair = \"head_covariance[0,0,1] + query_mse[1]\"\n"
      "index = \"1 - index_output\"\n");
  const ConditionEstimates of = estimate(tree, two_weights, two_truths, nullptr, {}, measures);
  const JackknifedEstimates samples = jackknifed_estimates(tree, two_weights, two_truths);
  const auto expect = [&](const std::string& name, const Jackknifed& sample) {
    const Estimate expected = sample.figure(samples.node_counts);
    EXPECT_EQ(measured_number(of, name).value, expected.value) << name;
    EXPECT_EQ(measured_number(of, name).mcse, expected.mcse) << name;
    EXPECT_GT(expected.mcse, 0) << name;
  };
  expect("same", samples.mse);
  expect("share", samples.covariance_term / samples.mse);
  expect("twice", 2 * (samples.covariance_term / samples.mse));
  expect("bias", samples.queries[1].head_bias[0]);
  expect("pair", samples.queries[0].head_covariance[1] + samples.queries[1].mse);
  expect("index", 1 - samples.output_index);
  // Control: what the figures have in common counts, so that errors do not add up as of
  // independent ones.
  const Estimate mse = of.mse, covariance = of.covariance_term;
  const double apart = std::abs(covariance.value / mse.value) *
                       std::hypot(covariance.mcse / covariance.value, mse.mcse / mse.value);
  EXPECT_GT(std::abs(measured_number(of, "share").mcse / apart - 1), 0.05);
  // The figures themselves are as without measures, and averages have measures of queries too.
  const ConditionEstimates without = estimate(tree, two_weights, two_truths);
  EXPECT_EQ(of.mse.mcse, without.mse.mcse);
  EXPECT_EQ(all_numbers<const Estimate>(of).size(),
            all_numbers<const Estimate>(without).size() + measures.size());
  const JackknifedEstimates averages =
      jackknifed_averages(tree, two_weights, two_truths, nullptr, {}, measures);
  EXPECT_TRUE(averages.queries.empty());
  EXPECT_EQ(averages.measures.at(3).number.figure(averages.node_counts).mcse,
            measured_number(of, "bias").mcse);
}

TEST(Measures, RemaindersAddUpWhatFiguresCanChange) {
  ErrorTerms<Remainder> terms;
  terms.mse = {2, 0.1};
  terms.covariance_term = {1, 0.2};
  add_measures(terms, measures_of("share = \"covariance_term / mse\"\nlost = \"bias_squared\"\n"));
  const Remainder share = terms.measures.at(0).number;
  EXPECT_EQ(share.value, 0.5);
  EXPECT_NEAR(share.remainder, 0.2 / 2 + (1 / 1.9 - 1 / 2.0), 1e-15);
  EXPECT_TRUE(std::isnan(terms.measures.at(1).number.remainder));
}

TEST(Measures, DenominatorsNearZeroAreKnown) {
  const MomentTree tree = drawn_tree(512);
  const ConditionEstimates plain = estimate(tree, two_weights, two_truths);
  const auto is_doubtful = [&](const std::string& formula) {
    const Measures measures = measures_of("m = \"" + formula + "\"\n");
    return divides_by_noise(
        estimate(tree, two_weights, two_truths, nullptr, {}, measures).measures.at(0));
  };
  const std::string near = number_text(plain.mse.value + 5 * plain.mse.mcse);
  const std::string far = number_text(plain.mse.value + 7 * plain.mse.mcse);
  for (const char* before : {"1 / (mse - ", "bias_squared * (mse - "}) {
    const std::string power = before[0] == '1' ? ")" : ") ^ -2";
    EXPECT_TRUE(is_doubtful(before + near + power));
    EXPECT_FALSE(is_doubtful(before + far + power));
  }
  EXPECT_TRUE(is_doubtful("log(" + near + " - mse)"));
  EXPECT_FALSE(is_doubtful("log(" + far + " - mse)"));
  EXPECT_TRUE(is_doubtful("sqrt(" + near + " - mse)"));
  EXPECT_TRUE(is_doubtful("(" + near + " - mse) ^ 0.3"));
  EXPECT_FALSE(is_doubtful("mse - " + near));
  EXPECT_FALSE(is_doubtful("mse / (3 + 1)"));
}

TEST(Measures, RefuseWhatIsNoFormulaOfFigures) {
  const auto line = [](const std::string& lines) {
    return refusal_line([&] { measures_of(lines); });
  };
  EXPECT_EQ(line("\"a b\" = \"mse\"\n"),
            "m.toml:2:1: measures.a b: is not a name for a measure: letters, digits and _, 64 at "
            "most, and no function - choose another name");
  EXPECT_NE(line("a = \"b\"\nb = \"mse\"\n"), "accepted");
  EXPECT_EQ(line("b = \"mse\"\na = \"b\"\n"), "accepted");
  EXPECT_NE(line("a = \"head_bias[0]\"\n"), "accepted");
}

}  // namespace
}  // namespace headlab
