// SPDX-License-Identifier: Apache-2.0
#include "validation/search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace headlab {
namespace {

/// A head set with its score.
struct Candidate {
  const HeadSet* set;
  Score score;
};

/// Most head sets whose pairs a budget reaches: m (m - 1) / 2 <= pairs.
std::size_t reached(std::uint64_t pairs) {
  return static_cast<std::size_t>((1 + std::sqrt(1 + 8 * static_cast<double>(pairs))) / 2);
}

/// `count` of the numbers below `size`, ascending. Written out because the standard library's own
/// shuffles differ from one library to another.
std::vector<std::size_t> sample(std::size_t size, std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  if (count >= size) return numbers;
  for (std::size_t i = 0; i < count; ++i) std::swap(numbers[i], numbers[i + random() % (size - i)]);
  numbers.resize(count);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Smaller is better.
auto rank(const Candidate& diverse, const Candidate& plain) {
  const Simplicity &a = diverse.set->simplicity, &b = plain.set->simplicity;
  return std::tuple(a.numbers + b.numbers, a.digits + b.digits,
                    -diverse.score.error / plain.score.error);
}

FamilyRate& rate_of(std::vector<FamilyRate>& rates, const HeadSet& a, const HeadSet& b) {
  const std::string family = a.family == b.family ? a.family : "mixed";
  for (FamilyRate& rate : rates) {
    if (rate.family == family) return rate;
  }
  return rates.emplace_back(FamilyRate{.sizes = a.sizes, .family = family});
}

void search_size(const HeadSizes& sizes, const SearchSettings& settings, const Scorer& scorer,
                 std::uint64_t budget, std::mt19937_64& random, SearchReport& report) {
  const std::vector<HeadSet> sets = head_sets(sizes, settings.haar_draws);
  std::vector<Candidate> candidates;
  for (std::size_t i : sample(sets.size(), reached(budget), random)) {
    const Score score = scorer(sets[i]);
    ++report.head_sets;
    if (std::abs(score.remainder) > settings.max_remainder) {
      ++report.left_out;
    } else {
      candidates.push_back({&sets[i], score});
    }
  }

  std::vector<FamilyRate> rates;
  std::optional<std::pair<Candidate, Candidate>> best, closest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      FamilyRate& rate = rate_of(rates, *candidates[i].set, *candidates[j].set);
      ++rate.pairs;
      const bool first = candidates[i].score.index > candidates[j].score.index;
      const Candidate& diverse = candidates[first ? i : j];
      const Candidate& plain = candidates[first ? j : i];
      const bool ordered = diverse.score.index - plain.score.index > settings.index_zone;
      const auto ratio = [](const Candidate& a, const Candidate& b) {
        return a.score.error / b.score.error;
      };
      if (ordered && (!closest || ratio(diverse, plain) > ratio(closest->first, closest->second))) {
        closest = {diverse, plain};
      }
      const bool inverted = ordered && ratio(diverse, plain) > 1 + settings.error_zone;
      if (!inverted) continue;
      ++rate.inversions;
      if (!best || rank(diverse, plain) < rank(best->first, best->second)) best = {diverse, plain};
    }
  }
  for (const FamilyRate& rate : rates) {
    report.pairs += rate.pairs;
    report.inversions += rate.inversions;
    report.rates.push_back(rate);
  }
  const auto pair = [](const Candidate& a, const Candidate& b) {
    return Inversion{*a.set, *b.set, a.score, b.score};
  };
  if (best) {
    report.simplest.push_back(pair(best->first, best->second));
  } else if (closest) {
    report.closest.push_back(pair(closest->first, closest->second));
  }
}

}  // namespace

SearchReport search_inversions(const SearchSettings& settings, const Scorer& scorer) {
  if (settings.sizes.empty()) throw std::invalid_argument("a search needs sizes of head sets");
  SearchReport report;
  std::mt19937_64 random(settings.seed);
  for (const HeadSizes& sizes : settings.sizes) {
    search_size(sizes, settings, scorer, settings.pairs / settings.sizes.size(), random, report);
  }
  std::stable_sort(report.simplest.begin(), report.simplest.end(),
                   [](const Inversion& a, const Inversion& b) {
                     const HeadSizes &s = a.diverse.sizes, &t = b.diverse.sizes;
                     return std::tuple(s.heads, s.k, s.d) < std::tuple(t.heads, t.k, t.d);
                   });
  return report;
}

std::string search_extent(const SearchReport& report) {
  std::ostringstream text;
  text << report.pairs << " pairs of " << report.head_sets << " head sets examined";
  if (report.left_out > 0) text << " (" << report.left_out << " sets beyond first order left out)";
  text << ", " << report.inversions << " inversions predicted; by H, k, d";
  using Share = std::pair<std::uint64_t, std::uint64_t>;
  std::map<std::string, Share> families;
  std::vector<std::pair<std::string, Share>> sizes;
  for (const FamilyRate& rate : report.rates) {
    const std::string size = std::to_string(rate.sizes.heads) + ", " +
                             std::to_string(rate.sizes.k) + ", " + std::to_string(rate.sizes.d);
    if (sizes.empty() || sizes.back().first != size) sizes.push_back({size, {}});
    for (Share* share : {&sizes.back().second, &families[rate.family]}) {
      share->first += rate.inversions;
      share->second += rate.pairs;
    }
  }
  const char* before = ": ";
  for (const auto& [size, share] : sizes) {
    text << before << size << ": " << share.first << "/" << share.second;
    before = "; ";
  }
  text << "; by family";
  before = ": ";
  for (const auto& [family, share] : families) {
    text << before << family << " " << share.first << "/" << share.second;
    before = ", ";
  }
  return text.str();
}

}  // namespace headlab
