// SPDX-License-Identifier: Apache-2.0
/// \file Numbers of a scenario that are formulas of its other numbers.
#pragma once

#include "engine/files/document.h"

namespace headlab {

/// The nearest number with so many significant digits.
double with_digits(double value, int digits);

/// With 15: 0.6 in place of 0.6000000000000001.
inline double short_decimal(double value) {
  return with_digits(value, 15);
}

/// Whether `value` is a table { formula = "..." } and nothing else.
bool is_formula(const Value& value);

/// Puts numbers in place of the formulas of a scenario, whole numbers where they come out whole, of
/// 15 significant digits else. Names are dotted keys, or the last part of a key, where one number
/// alone has it. Throws InvalidInput, as at the formula, for a text that is none (see
/// kernels/formula.h), an unknown or ambiguous name, formulas that need one another, and for a
/// value that is not finite.
void compute_formulas(Value& scenario);

}  // namespace headlab
