// SPDX-License-Identifier: Apache-2.0
/// \file What two results of `headlab run` differ in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "engine/results/stored_figures.h"
#include "validation/difference/pairing.h"

namespace headlab {

/// Chance of finding a difference between two runs of one problem.
inline constexpr double difference_level = 0.0027;

/// A key of the scenario, or a word on what made the results, with the value of either side.
struct KeyDifference {
  std::string key;  ///< dotted
  std::string a;    ///< as JSON; empty where it is not given
  std::string b;
  std::size_t conditions = 0;  ///< matching conditions that differ so

  template <class Visitor>
  void fields(Visitor& visit) const {
    const auto known = [](const std::string& text) {
      return text.empty() ? std::nullopt : std::optional(JsonText{text});
    };
    visit("key", key, "dotted key");
    visit("a", known(a), "value in A");
    visit("b", known(b), "value in B");
    visit("conditions", conditions, "matching conditions that differ so");
  }
};

/// A figure of a matching condition.
struct FigureDifference {
  std::size_t condition_a = 0;  ///< from 0
  std::size_t condition_b = 0;
  std::string label;  ///< the swept values
  std::string figure;
  Estimate a;
  Estimate b;
  Estimate difference;  ///< b - a
  double df = 0;        ///< degrees of freedom of its MCSE
  double rounding = 0;  ///< that counts as none
  double in_mcse = 0;   ///< difference/MCSE; infinite where an exact figure differs
  double p_value = 1;
  Pairing pairing = Pairing::independent;
  bool differs = false;   ///< by Holm's procedure
  std::size_t order = 0;  ///< among those compared

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("condition_a", condition_a, "condition of A, from 0");
    visit("condition_b", condition_b, "condition of B, from 0");
    visit("condition", label, "swept values");
    visit("figure", figure, "its name in the summary");
    visit("a", a, "figure of A");
    visit("b", b, "figure of B");
    visit("difference", difference, "b - a");
    visit("in_mcse", in_mcse, "difference/MCSE, null where an exact figure differs");
    visit("p_value", p_value, "of the test that there is none");
    visit("differs", differs, "by Holm's procedure over all figures");
    visit("mcse_of_difference", pairing_name(pairing), "how its MCSE is found");
  }
};

/// What became of the figures of all matching conditions.
struct FigureCounts {
  std::size_t compared = 0;
  std::size_t same_bits = 0;      ///< of these
  std::size_t differ = 0;         ///< by Holm's procedure
  std::size_t undefined = 0;      ///< in one or both
  std::size_t in_one = 0;         ///< of A or B alone
  std::size_t other_queries = 0;  ///< at queries that are not the same points

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("compared", compared, "figures compared");
    visit("same_bits", same_bits, "of these with the same bits");
    visit("differ", differ, "of these that differ");
    visit("undefined", undefined, "undefined in A or B");
    visit("in_one", in_one, "of A or B alone");
    visit("other_queries", other_queries, "at queries that are not the same");
  }
};

enum class NodeBits { same, different, unknown };

struct ResultsDifference {
  static constexpr std::size_t max_rows = 100000;

  std::vector<KeyDifference> made_by;  ///< version, backend, ...
  std::vector<KeyDifference> keys;
  std::size_t matching = 0;               ///< conditions
  std::vector<std::string> a_alone = {};  ///< labels of conditions without a match
  std::vector<std::string> b_alone = {};
  bool a_complete = true;
  bool b_complete = true;
  NodeBits nodes = NodeBits::same;  ///< of all matching conditions
  FigureCounts counts;
  std::vector<FigureDifference> rows;  ///< largest first, at most max_rows
  std::vector<Pairing> pairings = {};  ///< in use

  /// Everything there is has the same bits on both sides.
  bool same_bits() const {
    return a_alone.empty() && b_alone.empty() && nodes != NodeBits::different &&
           counts.in_one == 0 && counts.other_queries == 0 && figures_same_bits;
  }
  bool figures_same_bits = true;
};

/// Compares matching conditions, those of the same swept values. Figures are tested one by one for
/// a difference beyond rounding, by Holm's procedure at difference_level for all. Throws
/// InvalidInput where no condition matches or no figure can be compared.
ResultsDifference difference_of(const StoredResults& a, const StoredResults& b);

}  // namespace headlab
