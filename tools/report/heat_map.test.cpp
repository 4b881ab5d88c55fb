// SPDX-License-Identifier: Apache-2.0
#include "tools/report/heat_map.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

using Rgb = std::array<double, 3>;

/// "#fff" or "#0072b2", each part of 1.
Rgb rgb_of(const std::string& color) {
  const std::size_t digits = color.size() == 4 ? 1 : 2;
  Rgb rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    std::string part = color.substr(1 + i * digits, digits);
    if (digits == 1) part += part;
    rgb[i] = static_cast<double>(std::strtol(part.c_str(), nullptr, 16)) / 255;
  }
  return rgb;
}

/// Contrast of two colours by WCAG 2, from 1 to 21.
double contrast(const Rgb& a, const Rgb& b) {
  const auto luminance = [](const Rgb& rgb) {
    const auto linear = [](double part) {
      return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
  };
  const double one = luminance(a), other = luminance(b);
  return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

/// Least contrast of the numbers in cells of a colour, in the light or the dark scheme.
/// \param black_from  the faintest shade with black numbers; 0: as pictures have them
double min_contrast(const char* color, bool dark, int black_from = 0) {
  const auto of = [&](const std::string& name) {
    for (const StyleColor& one : style_colors()) {
      if (one.name == name) return rgb_of(dark ? one.dark : one.light);
    }
    return Rgb{};
  };
  double least = HUGE_VAL;
  for (int shade = 1; shade <= shades; ++shade) {
    Rgb cell{};
    const double share = shade_opacity(shade);
    for (std::size_t i = 0; i < 3; ++i) {
      cell[i] = share * of(color)[i] + (1 - share) * of("bg")[i];
    }
    const bool black = black_from == 0 ? has_black_numbers(shade) : shade >= black_from;
    least = std::min(least, contrast(cell, black ? Rgb{} : of("c0")));
  }
  return least;
}

TEST(HeatMap, HasNumbersThatCanBeRead) {
  constexpr double of_text = 4.5;  // level AA of WCAG 2
  for (const char* color : {"c1", "c4"}) {
    for (const bool dark : {false, true}) {
      EXPECT_GE(min_contrast(color, dark), of_text) << color << (dark ? " dark" : " light");
    }
  }
  EXPECT_LT(min_contrast("c1", true, shades + 1), of_text);  // the controls: always the text's
  EXPECT_LT(min_contrast("c1", true, 1), of_text);           // colour, and always black
}

}  // namespace
}  // namespace headlab::tools
