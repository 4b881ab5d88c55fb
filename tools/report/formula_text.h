// SPDX-License-Identifier: Apache-2.0
/// \file Formulas within prose as HTML.
#pragma once

#include <string>
#include <string_view>

namespace headlab::tools {

/// Numbers with exponents as people write them: "2.5·10^−7" of "2.5e-07".
std::string with_powers(std::string_view text);

/// Text whose formulas have the signs of print, those of labels in pictures too: ≤ and ≥, √ of a
/// bracket, ∫ of "int e", s^2 of "s2", minus signs (1 − 1/H, N−1 in brackets, −1.5), and numbers
/// with_powers().
std::string with_signs(std::string_view text);

/// Text as HTML with its formulas set as such: what with_signs() sets, subscripts of one or two
/// letters, of "eff" or of a bracket (d_k, n_eff, C_hl, D_(l-1)), powers (b^2, n^(-1/4)) and Greek
/// letters (sigma_c). Other names with underscores stay as they are.
std::string formula_html(std::string_view text);

}  // namespace headlab::tools
