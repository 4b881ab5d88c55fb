// SPDX-License-Identifier: Apache-2.0
/// \file Keys, figures and laws in words.
#pragma once

#include <string>

namespace headlab::tools {

/// Returns "first order" for "first_order". Other texts, such as the file name "a_b.csv", are
/// unchanged.
std::string in_words(std::string name);

/// A key in words: "training points n" of "data.n", "standard deviation" of "data.noise.sd".
std::string words_of_key(const std::string& key);

/// The same with the unit of a parameter that has one: "angle (rad)".
std::string axis_title(const std::string& key);

/// "H" of "heads.count", whose last part does not say what is counted; empty of other keys.
std::string symbol_of_count(const std::string& key);

/// A figure in words, as for an axis: "mean squared error".
std::string figure_words(const std::string& figure);

}  // namespace headlab::tools
