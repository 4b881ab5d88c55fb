// SPDX-License-Identifier: Apache-2.0
/// \file Tables of how the best heads grow.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "validation/allocation/growth_study.h"
#include "validation/allocation/regime_map.h"

namespace headlab::tools {

/// k* over n, and which laws fit it.
std::string growth_table(const GrowthStudy& study);

/// H* over D at one n, and which laws fit it.
using HeadGrowthAt = std::pair<std::uint64_t, HeadGrowth>;
std::string head_growth_table(const std::vector<HeadGrowthAt>& growths);

/// One line a cell of a map: its setting, k* at each n, the verdict and the exponents; then what
/// the map shows, in sentences that count the cells.
std::string regime_table(const RegimeMap& map);

/// A swept value as a cell of a table: "orthogonal", "normal dim=12".
std::string setting_value_text(std::string toml);

}  // namespace headlab::tools
