// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/extremes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace headlab {
namespace {

/// Replicates with keys of which many are equal.
std::vector<Extreme> replicates_with_ties(std::size_t count) {
  std::vector<Extreme> all;
  for (std::size_t r = 0; r < count; ++r) {
    all.push_back({std::floor(30 * std::abs(std::sin(static_cast<double>(7 * r)))), r});
  }
  return all;
}

template <class Range>
ExtremeList list_of(ExtremeList::Kind kind, const Range& replicates,
                    std::size_t most = max_extremes) {
  ExtremeList list(kind);
  for (const Extreme& one : replicates) list.add(one, most);
  return list;
}

constexpr ExtremeList::Kind kinds[] = {ExtremeList::Kind::largest, ExtremeList::Kind::least};

TEST(Extremes, AreTheMostExtremeWithTiesToTheLowerReplicate) {
  for (const ExtremeList::Kind kind : kinds) {
    std::vector<Extreme> sorted = replicates_with_ties(300);
    const ExtremeList list = list_of(kind, sorted);
    std::ranges::stable_sort(sorted, [&](const Extreme& a, const Extreme& b) {
      return kind == ExtremeList::Kind::largest ? a.key > b.key : a.key < b.key;
    });
    sorted.resize(max_extremes);
    EXPECT_EQ(list.all(), sorted);
    // The ties are there to be seen.
    EXPECT_EQ(sorted[0].key, sorted[1].key);
  }
}

TEST(Extremes, MergeInAnyOrderAndGrouping) {
  const std::vector<Extreme> all = replicates_with_ties(203);
  std::mt19937_64 random(3);
  for (const ExtremeList::Kind kind : kinds) {
    const ExtremeList whole = list_of(kind, all);
    for (int trial = 0; trial < 50; ++trial) {
      // Blocks of any size, merged pair by pair wherever they stand.
      std::vector<ExtremeList> parts;
      for (std::size_t first = 0; first < all.size();) {
        const std::size_t size = std::min<std::size_t>(1 + random() % 40, all.size() - first);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        parts.push_back(
            list_of(kind, std::vector(begin, begin + static_cast<std::ptrdiff_t>(size))));
        first += size;
      }
      std::ranges::shuffle(parts, random);
      while (parts.size() > 1) {
        const std::size_t i = random() % (parts.size() - 1);
        parts[i].merge(parts[i + 1]);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
      EXPECT_EQ(parts[0], whole);
    }
  }
}

TEST(Extremes, OfPartsThatKeepFewerAreOthers) {
  const std::vector<Extreme> all = replicates_with_ties(200);
  const auto middle = all.begin() + 100;
  ExtremeList merged = list_of(ExtremeList::Kind::largest, std::vector(all.begin(), middle), 3);
  merged.merge(list_of(ExtremeList::Kind::largest, std::vector(middle, all.end()), 3));
  EXPECT_NE(merged, list_of(ExtremeList::Kind::largest, all));
}

TEST(Extremes, LeaveOutWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ExtremeList::Kind kind : kinds) {
    const ExtremeList list = list_of(
        kind, std::vector<Extreme>{{std::nan(""), 0}, {infinity, 1}, {-infinity, 2}, {1.0, 3}});
    EXPECT_EQ(list.all(), (std::vector<Extreme>{{1.0, 3}}));
  }
}

TEST(Extremes, KnowSampleSizesWhereBothDo) {
  Extremes with;
  with.min_sample_size->add({2.0, 0});
  Extremes others;
  others.min_sample_size->add({2.0, 1});
  Extremes without;
  without.min_sample_size.reset();
  Extremes merged = with;
  merged.merge(others);
  EXPECT_TRUE(merged.min_sample_size);
  merged.merge(without);
  EXPECT_FALSE(merged.min_sample_size);
  merged.merge(others);
  EXPECT_FALSE(merged.min_sample_size);
}

}  // namespace
}  // namespace headlab
