// SPDX-License-Identifier: Apache-2.0
/// \file Square matrices, and figures over two keys, in shades.
#pragma once

#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "tools/report/canvas.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// A symmetric matrix of heads by heads with its title.
struct HeadMatrix {
  std::string title;
  std::size_t heads = 0;
  std::vector<double> values;  ///< [heads][heads]
  /// [heads][heads], standard errors of the values; empty where they are not known.
  std::vector<double> errors = {};

  double at(std::size_t h, std::size_t l) const { return values[h * heads + l]; }
  Estimate estimate(std::size_t h, std::size_t l) const {
    Estimate one{.value = at(h, l)};
    if (!errors.empty()) one.mcse = errors[h * heads + l];
    return one;
  }
};

/// The matrix of a JSON array of rows; no heads where it is none.
HeadMatrix head_matrix(const std::string& title, const Value& rows);

/// The pairs of heads with the smallest and the largest finite value off the diagonal.
struct PairExtremes {
  bool found = false;
  std::size_t low[2] = {0, 0}, high[2] = {0, 0};
  double lowest = 0, highest = 0;
};
PairExtremes extremes_of(const HeadMatrix& matrix);

/// The number of shades of one sign, from 1 for the faintest.
inline constexpr int shades = 8;
/// How much of a colour a shade is, the rest being the ground; and the class of its numbers: the
/// one of "ink", "plain" and "ground" that stands out most in the scheme in which it does so least.
/// Diagonals are of a grey that black is read on.
double shade_opacity(int shade);
const char* number_class(int shade);

/// What the cells of matrices are, and what those of their diagonals.
struct HeatMapWords {
  std::string title, diagonal;
};

/// Matrices on one scale of shades, one path a shade, which spans the values off their diagonals.
/// Diagonals are grey; what is not finite stays empty.
Canvas draw_heat_maps(const HeatMapWords& words, const std::vector<HeadMatrix>& matrices,
                      double width);

/// A figure over two keys.
struct FigureMap {
  std::string title, x_title, y_title;
  std::vector<std::string> x = {}, y = {};  ///< names of columns and rows
  std::vector<double> values = {};          ///< [y][x], NaN where there is none
};

/// Cells in shades, with their numbers where all of them have room.
Canvas draw_map(const FigureMap& map, double width);

/// "0 and 1"
std::string pair_text(const std::size_t (&pair)[2]);

}  // namespace headlab::tools
