// SPDX-License-Identifier: Apache-2.0
/// \file Values of a sweep in equal steps, in equal ratios or in steps of a given size.
#pragma once

#include <cstddef>
#include <string>

#include "engine/files/document.h"

namespace headlab {

/// Whether `value` is a table with one of the keys linspace, logspace and range.
bool is_progression(const Value& value);

/// The values that such a table stands for:
///   { linspace = [a, b, N] }   a + (b - a) i/(N - 1), i = 0 ... N - 1
///   { logspace = [a, b, N] }   a (b/a)^(i/(N - 1)), 0 < a, 0 < b
///   { range = [a, b, STEP] }   a, a + STEP, ... up to b, which is the last value if a step meets
///   it
/// The first and, for N, the last value are exact; the others have 15 significant digits. Values
/// are integers where a and b are integers and every value is one; `round = true` rounds every
/// value to an integer and drops repeated ones. \param max_values  more than these are refused
/// Throws InvalidInput, as at the table's location, for anything else. `key` names it.
Value::Array progression(const Value& table, const std::string& key, std::size_t max_values);

}  // namespace headlab
