// SPDX-License-Identifier: Apache-2.0
/// \file The stages of `[heads.mechanism]` in words and formulas.
#pragma once

#include <string>
#include <vector>

#include "tools/report/source.h"

namespace headlab::tools {

/// The estimate of the ensemble, with `conditions` of a run: that of plain heads, or where stages
/// are in force that of the tokens they leave. In the notation of mathml().
std::string ensemble_formula(const Value::Array& conditions);

/// The stages in force in some condition as list items, in the order in which they apply; empty
/// where there are none.
std::string mechanism_html(const Value::Array& conditions);

}  // namespace headlab::tools
