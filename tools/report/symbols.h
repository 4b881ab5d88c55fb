// SPDX-License-Identifier: Apache-2.0
/// \file What the symbols of formulas stand for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/markup.h"

namespace headlab::tools {

/// A symbol that means the same in all formulas of a report.
struct Symbol {
  const char* name;   ///< in the notation of mathml(), with its subscript where that tells it apart
  const char* shown;  ///< with what it usually carries, in the notation of mathml()
  const char* words;  ///< as of with_formulas()
};

/// Symbols of studies of regression, of stacks of layers and of the diversity of heads.
const std::vector<Symbol>& symbols_of_regression();
const std::vector<Symbol>& symbols_of_layers();
const std::vector<Symbol>& symbols_of_heads();

/// Prose with formulas in the notation of mathml() between dollar signs, as HTML.
std::string with_formulas(std::string_view text);

/// Appends what the symbols in the formulas of `sections` and of its own entries stand for, in the
/// order of the table.
void add_symbols(const std::vector<Symbol>& table, std::vector<Section>& sections);

/// What a law's formula needs besides its parameters and the symbols of the report, as HTML;
/// mostly nothing.
std::string where_html(const std::string& family, const std::string& law);

}  // namespace headlab::tools
