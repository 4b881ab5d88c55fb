// SPDX-License-Identifier: Apache-2.0
// Padding, masks and queries that see no key change nothing but what they leave out.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "validation/heads/measure.h"
#include "validation/heads/testing/arrays_in_memory.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using test::ArraysInMemory;
using test::MadeLayer;
using Memory = std::shared_ptr<ArraysInMemory>;

/// Tokens [first, first + count) of the 40 of a made layer.
Memory cut(const Memory& whole, std::size_t first, std::size_t count) {
  auto some = std::make_shared<ArraysInMemory>();
  some->take(*whole);
  for (const char* name : {"q", "k", "v", "residual", "grad_z"}) {
    std::vector<std::uint64_t> shape = whole->arrays().at(name).shape;
    const std::size_t n = shape.back();
    shape[shape.size() - 2] = count;
    const std::vector<double>& all = whole->values(name);
    std::vector<double> kept;
    for (std::size_t row = 0; row < all.size() / n; ++row) {
      if (row % 40 < first || row % 40 >= first + count) continue;
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(row * n);
      kept.insert(kept.end(), from, from + static_cast<std::ptrdiff_t>(n));
    }
    some->put(name, shape, kept);
  }
  return some;
}

MeasuredLayer figures_of(const Memory& file) {
  return measure_heads(file, {}, {}, 2).layers.at(0);
}

/// Of all figures but one, relative to the largest number of each.
void expect_alike(const MeasuredLayer& found, const MeasuredLayer& expected,
                  const std::string& without = "") {
  ASSERT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.figures.size(), expected.figures.size());
  for (std::size_t f = 0; f < found.figures.size(); ++f) {
    const std::vector<double>&a = found.figures[f].values, &b = expected.figures[f].values;
    if (found.figures[f].name == without) continue;
    double most = 0;
    for (const double one : b) most = std::max(most, std::abs(one));
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_LE(std::abs(a[i] - b[i]), 1e-11 * most) << found.figures[f].name << " " << i;
    }
  }
}

TEST(PaddedActivations, BehindTheTokensAreThoseWithoutPadding) {
  const Memory whole = MadeLayer().arrays();
  const MeasuredLayer expected = figures_of(cut(whole, 0, 33));
  whole->put("length", {12}, std::vector<double>(12, 33), NumberKind::whole);
  expect_alike(figures_of(whole), expected);
  whole->remove("length");
  std::vector<double> valid;
  for (std::size_t i = 0; i < std::size_t{12} * 40; ++i) valid.push_back(i % 40 < 33 ? 1 : 0);
  whole->put("valid", {12, 40}, valid, NumberKind::whole);
  expect_alike(figures_of(whole), expected);
}

TEST(PaddedActivations, BeforeTheTokensAreThoseWithoutPadding) {
  const Memory whole = MadeLayer().arrays();
  const MeasuredLayer expected = figures_of(cut(whole, 5, 35));
  std::vector<double> valid;
  for (std::size_t i = 0; i < std::size_t{12} * 40; ++i) valid.push_back(i % 40 < 5 ? 0 : 1);
  whole->put("valid", {12, 40}, valid, NumberKind::whole);
  const MeasuredLayer found = figures_of(whole);
  EXPECT_EQ(found.blind, 0);
  expect_alike(found, expected, "first");  // key 0 is padding
}

TEST(MaskedActivations, ThatSeeNoKeyAreLeftOutAndCounted) {
  const Memory whole = MadeLayer().arrays();
  const MeasuredLayer expected = figures_of(whole);
  // Query 7 of every sequence sees nothing; the others what they saw.
  std::vector<double> seen;
  for (std::size_t t = 0; t < 40; ++t) {
    for (std::size_t s = 0; s < 40; ++s) seen.push_back(s <= t && t != 7 ? 1 : 0);
  }
  whole->put("mask", {1, 1, 40, 40}, seen, NumberKind::whole);
  const MeasuredLayer found = figures_of(whole);
  EXPECT_EQ(found.blind, 12);
  EXPECT_EQ(found.tokens, expected.tokens - 12);
  EXPECT_NE(found.find("self")->values, expected.find("self")->values);
  for (const HeadFigure& figure : found.figures) {
    EXPECT_TRUE(std::ranges::all_of(figure.values, [](double x) { return std::isfinite(x); }))
        << figure.name;
  }
  std::fill_n(seen.begin() + 7 * 40, 8, 1.0);
  whole->put("mask", {1, 1, 40, 40}, seen, NumberKind::whole);
  expect_alike(figures_of(whole), expected);
}

TEST(MaskedActivations, HaveAWindowAsTheirMaskHasIt) {
  const Memory whole = MadeLayer().arrays();
  whole->put("window", {}, {6});
  const MeasuredLayer expected = figures_of(whole);
  std::vector<double> seen;
  for (std::size_t t = 0; t < 40; ++t) {
    for (std::size_t s = 0; s < 40; ++s) seen.push_back(s <= t && t < s + 6 ? 1 : 0);
  }
  whole->remove("window");
  whole->put("mask", {1, 1, 40, 40}, seen, NumberKind::whole);
  expect_alike(figures_of(whole), expected);
}

}  // namespace
}  // namespace headlab
