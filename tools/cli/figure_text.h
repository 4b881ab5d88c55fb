// SPDX-License-Identifier: Apache-2.0
/// \file Numbers as a person reads them, with no more digits than their standard error supports,
/// and how wide text may be where it is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/moments/estimates.h"
#include "kernels/counted.h"

namespace headlab::tools {

/// "0.1234 ± 0.0012": two digits of the standard error, the value to the same decimal place;
/// "(1.23 ± 0.12)e-09" where it needs more than `max_decimals` decimals; "–" for what is
/// undefined.
std::string figure_text(const Estimate& figure, int max_decimals = 8);

/// "1.234(12)": the value over 10^exponent, and in parentheses its standard error in units of the
/// last digit shown; "–" for what is undefined.
std::string compact_figure_text(const Estimate& figure, int exponent);

/// "1.234(12)", or "4.6(45)e-15" for a figure that is far from 1.
std::string scientific_figure_text(const Estimate& figure);

/// "0.123457 (<1.2e-03)": a computed figure, with its remainder in parentheses where it is known;
/// "–" for what is undefined.
std::string computed_text(const Remainder& figure);

/// Up to four significant digits, or as many as are asked for; "–" for NaN.
std::string short_number(double number, int digits = 4);

/// A count, of so many significant digits, with commas between thousands from 10^6 on: "12288",
/// "1,235,000"; "–" for NaN.
std::string count_text(double count, int digits = 15);

/// Long fractions with four digits, where that leaves different numbers apart: values of a sweep in
/// equal ratios or by a formula. Texts that are not all numbers stay.
std::vector<std::string> with_few_digits(std::vector<std::string> numbers);

/// As many digits after the point; "–" for NaN.
std::string fixed_number(double number, int decimals);

/// A z to a hundredth; "–" for NaN.
std::string z_text(double z);

/// "12 s", "3 min 20 s", "2 h 05 min"; "–" for NaN.
std::string duration_text(double seconds);

/// Columns that a terminal needs for shown() of a UTF-8 text without wide characters.
std::size_t display_width(std::string_view text);

/// Pads texts to one width so that their decimal points and "±" stand under one another.
void align_figures(std::vector<std::string>& cells);

/// `text` with spaces before it up to `width` columns.
std::string right(std::string_view text, std::size_t width);
/// `text` with spaces after it up to `width` columns.
std::string left(std::string_view text, std::size_t width);

/// "a", "a and b", "a, b and c"; a word that is repeated throughout, once.
std::string and_listed(const std::vector<std::string>& words);

/// A bar for a share in [0, 1] of `width` columns, to an eighth of one; clamped outside.
std::string bar(double share, std::size_t width);

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
