// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/provenance.h"
#include "validation/allocation/allocate.h"
#include "validation/allocation/growth_study.h"
#include "validation/allocation/regime_map.h"
#include "validation/allocation/theory_study.h"

namespace headlab {

/// A study with the command that gives the same bits again.
struct ReplayedAllocation {
  AllocationStudy study;
  std::string replay;

  template <class Visitor>
  void fields(Visitor& visit) const {
    study.fields(visit);
    visit("replay", replay, "command that gives the same bits");
  }
};

/// Selections as one JSON object (docs/allocation.md), ending in a newline: a single one at the top
/// level, several as the array "studies". There is at least one. Growth studies, where there are
/// any, are the array "growth", and the growth of the best number of heads is "head_growth".
/// \param replay  the command that makes all of several again
std::string allocation_json(
    const std::vector<ReplayedAllocation>& studies, const Provenance& program,
    const std::vector<GrowthStudy>& growth = {},
    const std::vector<std::pair<std::uint64_t, HeadGrowth>>& head_growth = {},
    const std::string& replay = {});

/// A map as one JSON object, ending in a newline; `replay` is the command that makes it again.
std::string regime_json(const RegimeMap& map, const Provenance& program, const std::string& replay);

/// Allocations by theory as one JSON object (docs/scaling-law.md), ending in a newline.
/// \param limits what the figures are means over (theory_limits())
/// \param replay the command that makes them again
std::string theory_json(const std::vector<TheoryGrowth>& growths, const std::string& limits,
                        const Provenance& program, const std::string& replay);

}  // namespace headlab
