// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "validation/allocation/theory_study.h"

namespace headlab {

/// Allocations by theory as one JSON object (docs/allocation-theory.md), ending in a newline.
/// \param limits what the figures are means over (theory_limits())
std::string theory_json(const std::vector<TheoryGrowth>& growths, const std::string& limits,
                        const Provenance& program);

}  // namespace headlab
