// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/provenance.h"
#include "validation/allocation/allocate.h"
#include "validation/allocation/growth_study.h"

namespace headlab {

/// A study with the command that gives the same bits again.
struct ReplayedAllocation {
  AllocationStudy study;
  std::string replay;
};

/// Selections as one JSON object (docs/allocation.md), ending in a newline: a single one at the top
/// level, several as the array "studies". There is at least one. Growth studies, where there are
/// any, are the array "growth".
std::string allocation_json(const std::vector<ReplayedAllocation>& studies,
                            const Provenance& program, const std::vector<GrowthStudy>& growth = {});

}  // namespace headlab
