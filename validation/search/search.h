// SPDX-License-Identifier: Apache-2.0
/// \file Search for two head sets that a diversity index puts in the wrong order: the more diverse
/// one has the larger error, by its closed form.
///
/// A proposal is no proof. It is what the simulation is then asked about (confirm.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "validation/search/head_sets.h"

namespace headlab {

/// What a head set is compared by.
struct Score {
  double index = 0;      ///< diversity index
  double error = 0;      ///< predicted mean squared error
  double remainder = 0;  ///< signed relative second-order term of `error`; NaN where not closed
};
/// Scores one head set.
using Scorer = std::function<Score(const HeadSet&)>;

struct SearchSettings {
  std::vector<HeadSizes> sizes;  ///< searched in this order, each with an equal share of the budget
  int haar_draws = 40;           ///< of each size
  std::uint64_t pairs = 100000;  ///< budget: pairs of head sets to examine, at most
  std::uint64_t seed = 0;        ///< picks the head sets where the budget does not reach all
  double index_zone = 0.01;      ///< indices closer than this are no order
  double error_zone = 0.02;      ///< relative; errors closer than this are none either
  double max_remainder = 0.1;    ///< head sets beyond it are left out: no first order there
};

/// Two head sets of one size, in the wrong order.
struct Inversion {
  HeadSet diverse;  ///< larger index, larger error
  HeadSet plain;
  Score of_diverse;
  Score of_plain;

  double index_gap() const { return of_diverse.index - of_plain.index; }
  double error_ratio() const { return of_diverse.error / of_plain.error; }
};

/// How often the index failed among pairs of head sets of one size and one kind.
struct FamilyRate {
  HeadSizes sizes;
  std::string family;  ///< of both sets, or "mixed"
  std::uint64_t pairs = 0;
  std::uint64_t inversions = 0;
};

struct SearchReport {
  std::uint64_t head_sets = 0;  ///< scored
  std::uint64_t left_out = 0;   ///< of these, beyond max_remainder
  std::uint64_t pairs = 0;      ///< examined
  std::uint64_t inversions = 0;
  std::vector<FamilyRate> rates;
  std::vector<Inversion> simplest;  ///< the simplest of each size that has any, simplest first
  /// Of each size without one: the pair, further apart in index than the zone, that comes closest.
  std::vector<Inversion> closest;
};

/// Scores head sets of every size and examines pairs of them. Inversions of one size are ranked by
/// the numbers that must be told to describe the pair, then by the digits of these, then by the
/// larger error ratio. The report depends on the settings alone. Throws std::invalid_argument
/// without sizes.
SearchReport search_inversions(const SearchSettings& settings, const Scorer& scorer);

/// Returns "48 pairs of 12 head sets examined, 3 inversions predicted; by size ...; by family ..."
/// on one line: how much was searched.
std::string search_extent(const SearchReport& report);

}  // namespace headlab
