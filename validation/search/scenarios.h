// SPDX-License-Identifier: Apache-2.0
/// \file Scenarios that differ in their head sets alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/scenario/scenario.h"
#include "validation/search/head_sets.h"

namespace headlab {

/// Returns the text of a scenario with one condition for each law of subspaces, that is `base`
/// otherwise. Number and dimension of the heads are replaced, the design gets dimension d, and
/// query points and a direction of the regression get zeros for the coordinates they lack or lose
/// those they have too many.
/// \param laws as a scenario says them, `{ law = "aligned" }`
///
/// Throws InvalidInput where `base` has a design other than N(0, I), a regression other than `zero`
/// and those with a direction alone, or loses a coordinate that is not zero.
std::string head_sets_condition_text(const Condition& base, const HeadSizes& sizes,
                                     const std::vector<std::string>& laws, std::uint64_t seed,
                                     std::uint64_t replicates);

}  // namespace headlab
