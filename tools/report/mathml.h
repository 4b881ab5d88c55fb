// SPDX-License-Identifier: Apache-2.0
/// \file Formulas as MathML, from a line that reads like them.
#pragma once

#include <string>
#include <string_view>

namespace headlab::tools {

/// <math> of a formula. Words and letters are identifiers, digits numbers, `_` and `^` take the
/// next item or {group} as subscript and superscript; frac{a}{b}, sqrt{a} and sum are what they
/// say, and "quoted" text stays text. Brackets grow with a fraction between them. Everything else
/// is an operator.
/// \param block  on a line of its own
std::string mathml(std::string_view formula, bool block = false);

/// Formulas that "; " separates, each on a line of its own.
std::string displayed(std::string_view formulas);

}  // namespace headlab::tools
