// SPDX-License-Identifier: Apache-2.0
/// \file The characters that a terminal can show, UTF-8 or ASCII in its place; standard input,
/// output and error, which may be closed or full.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace headlab::tools {

/// From now on texts for people are UTF-8 where the codeset of the locale (LC_ALL, LC_CTYPE, LANG)
/// is, and ASCII where it is another; standard error converts by itself. Without this call they are
/// UTF-8. Both standard streams then show what they are given as visible() does
/// (engine/files/words.h): names of scenarios and files may hold what commands a terminal.
void use_characters_of_locale();

/// Standard error for the program's own commands to a terminal.
std::ostream& control_stream();

/// A UTF-8 text in ASCII: "±" is "+-", "²" is "^2", what has no form of its own is "?".
std::string ascii_text(std::string_view text);

/// A UTF-8 text as it is printed: as_called() (tools/cli/call_name.h), or ascii_text() of that.
std::string shown(std::string_view text);

/// A text in a line of Markdown, where it means nothing but itself.
std::string markdown_text(const std::string& text);

/// True where shown() keeps all characters.
bool shows_utf8();

/// Puts something in the place of each standard stream that is closed, so that no file opened later
/// gets its number, and what is printed. Writing to it fails as writing to a closed stream does.
void hold_standard_streams();

/// Writes to standard output and flushes it; throws RunFailed where that is closed, or a full disk.
void print(std::string_view text);

/// Flushes standard output, which may be closed or a full disk; throws RunFailed.
void finish_standard_output();

}  // namespace headlab::tools
