// SPDX-License-Identifier: Apache-2.0
#include "validation/search/search.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "validation/search/predict.h"

namespace headlab {
namespace {

const GaussianKernel gaussian{.bandwidth = 0.3};
const SoftmaxKernel softmax{.temperature = 1.75};

std::string text(const Inversion& inversion) {
  return inversion.diverse.toml() + " against " + inversion.plain.toml();
}

TEST(Search, ChordalFailsForTwoPlanes) {
  const SearchReport report =
      search_inversions({.sizes = {{2, 1, 2}, {2, 2, 4}}}, score_noise("chordal", gaussian, 300));
  // A pair of lines has one angle, which every index orders alike.
  ASSERT_EQ(report.simplest.size(), 1U);
  const Inversion& simplest = report.simplest[0];
  EXPECT_EQ(simplest.diverse.sizes.k, 2);
  EXPECT_GT(simplest.index_gap(), 0.01);
  EXPECT_GT(simplest.error_ratio(), 1.02);
  // No more to tell than the one known before the search: three angles, two of them not right.
  EXPECT_LE(simplest.diverse.simplicity.numbers + simplest.plain.simplicity.numbers, 3)
      << text(simplest);
  for (const FamilyRate& rate : report.rates) {
    if (rate.sizes.k == 1) {
      EXPECT_EQ(rate.inversions, 0U) << rate.family;
    }
  }
}

TEST(Search, KnownPairIsAnInversion) {
  HeadSet diverse{"known", {2, 2, 4}, PrincipalAngleSubspaces{{0.2255134058981, 1.5708}}, {}};
  HeadSet plain{
      "known", {2, 2, 4}, PrincipalAngleSubspaces{{0.7853981633974, 0.7853981633974}}, {}};
  const Scorer scorer = score_noise("chordal", gaussian, 300);
  const Score a = scorer(diverse), b = scorer(plain);
  EXPECT_NEAR(a.index, 0.525, 1e-9);
  EXPECT_NEAR(b.index, 0.5, 1e-9);
  EXPECT_GT(a.error, 1.02 * b.error);
}

TEST(Search, OverlapOrdersTheLeadingOrderOfPairs) {
  const SearchReport report = search_inversions({.sizes = {{2, 2, 4}, {3, 1, 3}, {3, 2, 6}}},
                                                score_noise("overlap", gaussian, 300));
  EXPECT_EQ(report.inversions, 0U);
  EXPECT_GT(report.pairs, 10000U);
  ASSERT_EQ(report.closest.size(), 3U);
  for (const Inversion& pair : report.closest) {
    EXPECT_GT(pair.index_gap(), 0.01);
    EXPECT_LT(pair.error_ratio(), 1);
    EXPECT_GT(pair.error_ratio(), 0.9);
  }
  // Negative control: the same pairs by a false index, the sign of whose angles is turned.
  const Scorer right = score_noise("overlap", gaussian, 300);
  const auto wrong = [&](const HeadSet& set) {
    Score score = right(set);
    score.index = 1 - score.index;
    return score;
  };
  EXPECT_GT(search_inversions({.sizes = {{2, 2, 4}}, .pairs = 1000}, wrong).inversions, 100U);
}

TEST(Search, SoftmaxHasInversionsOfItsOwnAndHeadSetsOutsideFirstOrderAreLeftOut) {
  const SearchReport report =
      search_inversions({.sizes = {{2, 2, 4}}}, score_noise("chordal", softmax, 300));
  EXPECT_GT(report.inversions, 0U);
  EXPECT_EQ(report.left_out, 0U);
  const SearchReport few = search_inversions(
      {.sizes = {{2, 3, 6}}}, score_noise("chordal", GaussianKernel{.bandwidth = 0.2}, 10));
  EXPECT_EQ(few.left_out, few.head_sets);
  EXPECT_EQ(few.pairs, 0U);
}

TEST(Search, SameSeedSameReportAndTheBudgetHolds) {
  const Scorer scorer = score_noise("spectral", gaussian, 300);
  SearchSettings settings{.sizes = {{2, 2, 4}, {3, 2, 6}}, .pairs = 2000, .seed = 3};
  const SearchReport one = search_inversions(settings, scorer);
  EXPECT_EQ(search_extent(one), search_extent(search_inversions(settings, scorer)));
  EXPECT_LE(one.pairs, settings.pairs);
  EXPECT_GT(one.pairs, settings.pairs / 2);
  settings.seed = 4;
  EXPECT_NE(search_extent(one), search_extent(search_inversions(settings, scorer)));
  EXPECT_THROW(search_inversions({}, scorer), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
