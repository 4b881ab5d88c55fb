// SPDX-License-Identifier: Apache-2.0
/// \file The characters that a terminal can show: UTF-8, or ASCII in its place.
#pragma once

#include <string>
#include <string_view>

namespace headlab::tools {

/// From now on texts for people are UTF-8 where the codeset of the locale (LC_ALL, LC_CTYPE, LANG)
/// is, and ASCII where it is another; standard error converts by itself. Without this call they are
/// UTF-8.
void use_characters_of_locale();

/// A UTF-8 text in ASCII: "±" is "+-", "²" is "^2", what has no form of its own is "?".
std::string ascii_text(std::string_view text);

/// A UTF-8 text as it is printed: unchanged, or ascii_text() of it.
std::string shown(std::string_view text);

/// True where shown() changes nothing.
bool shows_utf8();

}  // namespace headlab::tools
