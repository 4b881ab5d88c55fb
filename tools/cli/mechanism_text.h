// SPDX-License-Identifier: Apache-2.0
/// \file What sets the conditions of a scenario apart from plain heads on independent points.
#pragma once

#include <string>

#include "engine/scenario/scenario.h"

namespace headlab::tools {

/// "sequence ar1, correlation 0.9; merge 4; window swept": what is in force in some condition, in
/// the order in which it applies. Empty for plain heads on independent points.
std::string mechanism_text(const Scenario& scenario);

}  // namespace headlab::tools
