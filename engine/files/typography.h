// SPDX-License-Identifier: Apache-2.0
/// \file Characters of word processors, which stand where the keyboard's were meant.
#pragma once

#include <string>
#include <string_view>

namespace headlab {

/// What to write instead of the first typographic quote or dash of a text, as in "has the
/// typographic quote “ - write "": no-break spaces too. Empty where there is none.
std::string typographic_problem(std::string_view text);

/// `word` with a hyphen for each dash that it begins with, an en dash or an em dash standing for
/// two; empty where it begins with none.
std::string hyphenated(std::string_view word);

}  // namespace headlab
