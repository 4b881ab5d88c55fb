// SPDX-License-Identifier: Apache-2.0
/// \file How wide text may be where it is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headlab::tools {

/// Columns of standard output: the variable COLUMNS where it is set to a number, the width of a
/// terminal, and 0 (no limit) for a file or a pipe.
std::size_t output_width();

/// Columns of the terminal that standard error is; 0 (no limit) for a file or a pipe, so that
/// programs get a message on one line.
std::size_t error_width();

/// `text` with every line in lines of at most `width` columns; what follows a break stands under
/// the last column of its line, which begins behind two spaces or more.
std::string wrapped_columns(std::string_view text, std::size_t width);

/// `text` in lines of at most `width` columns, broken at spaces; a word longer than that stands
/// alone. Lines after a break start with `indent` spaces; line breaks of the text stay. Width 0:
/// `text` itself.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);

/// Lines below a table, as wide as standard output; what follows a break is indented.
std::string sentences(std::string_view lines);

}  // namespace headlab::tools
