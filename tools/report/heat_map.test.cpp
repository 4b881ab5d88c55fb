// SPDX-License-Identifier: Apache-2.0
#include "tools/report/heat_map.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <regex>
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

/// Contrast of a number of a class in a cell, in the light or the dark scheme, the lesser one.
double min_contrast(const std::string& number_class, int shade) {
  double least = HUGE_VAL;
  for (const bool dark : {false, true}) {
    const auto of = [&](const std::string& name) {
      for (const StyleColor& one : style_colors()) {
        if (one.name == name) return rgb_of(dark ? one.dark : one.light);
      }
      return Rgb{};
    };
    Rgb cell{};
    const double share = shade_opacity(shade);
    for (std::size_t i = 0; i < 3; ++i) {
      cell[i] = share * of(shade < 0 ? "c4" : "c1")[i] + (1 - share) * of("bg")[i];
    }
    const Rgb number = number_class == "ground" ? of("bg")
                       : number_class == "ink"  ? Rgb{}
                                                : of("c0");
    least = std::min(least, contrast(cell, number));
  }
  return least;
}

TEST(HeatMap, HasNumbersThatCanBeRead) {
  constexpr double of_text = 4.5;  // level AA of WCAG 2
  for (int shade = -shades; shade <= shades; ++shade) {
    if (shade == 0) continue;
    const double have = min_contrast(number_class(shade), shade);
    EXPECT_GE(have, of_text) << shade;
    for (const char* other : {"ink", "plain", "ground"}) {
      EXPECT_GE(have, min_contrast(other, shade)) << shade << " " << other;
    }
  }
}

TEST(HeatMap, HasOneNumberOfDecimals) {
  const HeadMatrix matrix{.title = "a", .heads = 2, .values = {1, 0.92, 0.92, 1}, .errors = {}};
  const std::string svg = draw_heat_maps({"cosine", ""}, {matrix}, 720).svg("id", "", "");
  EXPECT_NE(svg.find(">1.00<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">0.92<"), std::string::npos) << svg;
  EXPECT_EQ(svg.find(">1.0<"), std::string::npos) << svg;
}

TEST(HeatMap, HasItsKeyInsideThePicture) {
  const HeadMatrix small{.title = "a", .heads = 2, .values = {9, -1, -1, 9}, .errors = {}};
  const HeadMatrix large{.title = "b", .heads = 2, .values = {9, 1, 1, 9}, .errors = {}};
  for (const HeadMatrix& matrix : {small, large}) {
    for (const double width : {720.0, 368.0}) {
      const std::string svg =
          draw_heat_maps({"covariance", "variances"}, {matrix}, width).svg("id", "title", "words");
      const std::regex words("<text x=\"([0-9.]+)\"[^>]*>(variances)<");
      std::smatch found;
      ASSERT_TRUE(std::regex_search(svg, found, words)) << width;
      EXPECT_LE(std::stod(found[1]) + text_width(found[2]), width) << matrix.title;
    }
  }
}

TEST(HeatMap, SaysWhatItShowsOfWhat) {
  const HeadMatrix matrix{.title = "a", .heads = 2, .values = {9, 1, 1, 9}, .errors = {}};
  const std::string svg =
      draw_heat_maps({"covariance", "variances"}, {matrix}, 720).svg("id", "title", "words");
  EXPECT_NE(svg.find(">covariance<"), std::string::npos);
  EXPECT_NE(svg.find(">head<"), std::string::npos);
}

TEST(HeatMap, HasOneColourForTheDiagonal) {
  // Variances below, within and above the scale of the covariances, of which 3 is the largest.
  const HeadMatrix matrix{
      .title = "a", .heads = 3, .values = {0.5, 1, 2, 1, 2.5, 3, 2, 3, 9}, .errors = {}};
  const std::string svg =
      draw_heat_maps({"covariance", "variances"}, {matrix}, 720).svg("id", "title", "words");
  EXPECT_NE(svg.find("<path class=\"cell diagonal\" d=\"M0 0h1M1 1h1M2 2h1\"/>"),
            std::string::npos);
}

}  // namespace
}  // namespace headlab::tools
