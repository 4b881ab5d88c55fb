// SPDX-License-Identifier: Apache-2.0
/// \file Formulas within prose as HTML.
#pragma once

#include <string>
#include <string_view>

namespace headlab::tools {

/// Numbers with exponents as people write them: "2.5·10^−7" of "2.5e-07".
std::string with_powers(std::string_view text);

/// Text as HTML with its formulas set as such: subscripts of one or two letters or of a bracket
/// (d_k, C_hl, D_(l-1)), powers (b^2, n^(-1/4)), Greek letters (sigma_c), √, ≤ and
/// ≥, and numbers with_powers(); s2/n is s²/n. Other names with underscores
/// stay as they are.
std::string formula_html(std::string_view text);

}  // namespace headlab::tools
