// SPDX-License-Identifier: Apache-2.0
/// \file Selections and growth studies of several budgets and n, and their tables.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "validation/allocation/allocate.h"
#include "validation/allocation/allocation_json.h"
#include "validation/allocation/growth_study.h"
#include "validation/allocation/regime_map.h"

namespace headlab::tools {

/// H* over D at one n.
using HeadGrowthAt = std::pair<std::uint64_t, HeadGrowth>;

/// What was asked of every budget and n.
struct Allocations {
  std::vector<ReplayedAllocation> studies;  ///< by budget, then n
  std::vector<GrowthStudy> growths;         ///< by budget
  Outcome outcome;

  /// True where there is something to show.
  bool is_reached() const;
  /// The growth of the best number of heads over the budgets, at each n; empty where fewer than
  /// min_budgets are complete.
  std::vector<HeadGrowthAt> head_growths(std::span<const std::uint64_t> sizes,
                                         std::uint64_t seed) const;
};

/// Selects for every budget at every n, with `growth` studies the growth of each budget too, and
/// adds them one by one: where it throws, those before are there.
/// \param replay the command that gives the bits of a selection again, or nothing
void add_allocations(Allocations& all, Condition base, std::span<const std::uint64_t> budgets,
                     std::span<const std::uint64_t> sizes, bool growth,
                     const std::function<std::string(const AllocationStudy&)>& replay,
                     const Session& session, const AllocateOptions& options);

/// All for a person, without what time did not allow to begin; `again` is the command that makes
/// it again, or empty.
std::string allocations_table(const std::string& name, const Allocations& all,
                              const std::vector<HeadGrowthAt>& heads, const std::string& again);

/// k* over n, and which laws fit it.
std::string growth_table(const GrowthStudy& study);

/// The same of H* over D.
std::string head_growth_table(const std::vector<HeadGrowthAt>& growths);

/// One line a cell of a map: its setting, k* at each n, the verdict and the exponents; then what
/// the map shows, in sentences that count the cells.
std::string regime_table(const RegimeMap& map);

/// A swept value as a cell of a table: "orthogonal", "normal dim=12".
std::string setting_value_text(std::string toml);

}  // namespace headlab::tools
