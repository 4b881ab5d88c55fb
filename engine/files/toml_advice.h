// SPDX-License-Identifier: Apache-2.0
/// \file What to write where TOML, or a value of another kind, was meant.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/files/document.h"

namespace headlab {

enum class ValueKind { number, boolean, text, array, table };

/// The number that a text is, which may have _ between digits as in TOML.
std::optional<double> written_number(std::string_view text);

/// Whether a text has its digits in groups of three, as 1,000 where ',' is a separator.
bool in_groups(std::string_view text, std::string_view separators);

/// The number that a text was meant as, as TOML writes it: 0.05 of "5%" and "0,05", 1000 of
/// "1_000", "1,000", "1 000" and "1k", 0.25 of "1/4"; empty where it is none.
std::string number_meant(std::string_view text);

/// Why a value is not of the kind needed, and what to write instead where that is known:
/// "is "5%", needs a number - write 0.05". `needed` says it in words, as "a whole number".
std::string kind_problem(const Value& value, const std::string& needed, ValueKind kind);

/// The problem of a TOML text that its parser gave up at this line and column, both from 1, in our
/// words. `description` is the parser's.
std::string toml_problem(const std::string& text, int line, int column,
                         std::string_view description);

/// Why the text of a setting KEY=TEXT is no TOML value, and what to write instead. `at` is where
/// the parser gave up, from 0.
std::string value_problem(const std::string& key, const std::string& text, std::size_t at);

}  // namespace headlab
