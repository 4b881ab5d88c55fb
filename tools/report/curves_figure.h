// SPDX-License-Identifier: Apache-2.0
/// \file A figure over a swept key as curves, and over all conditions of crossed keys as a
/// nested-loop plot (Ruecker and Schwarzer 2014, BMC Medical Research Methodology 14:129).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "tools/report/canvas.h"

namespace headlab::tools {

/// A figure over x, ascending.
struct FigureCurve {
  std::string name;
  std::vector<double> x = {};
  std::vector<Estimate> y = {};
  std::string note = {};              ///< written at its end: "slope −0.80"
  std::vector<double> computed = {};  ///< by closed forms, NaN or nothing where there are none
};

struct CurvesPanel {
  std::string title;
  std::vector<FigureCurve> curves = {};  ///< a colour each
};

struct CurvesPicture {
  std::string x_title, y_title;
  ScaleKind x_kind = ScaleKind::linear, y_kind = ScaleKind::linear;
  std::vector<CurvesPanel> panels = {};  ///< a curve has its name's colour in all of them
  /// Of the places 0, 1, ... along x, where values are not numbers and points are not joined.
  std::vector<std::string> x_words = {};
};

/// "slope −0.81 ± 0.01"
std::string slope_note(const Estimate& slope);

/// Slopes of logarithms are written beside curves, and both axes can have logarithms, where they
/// are seen.
bool show_slopes(const std::vector<CurvesPanel>& panels);

/// The numbers that the axis of a curve has to hold.
void add_values(const FigureCurve& curve, ScaleKind kind, std::vector<double>& all);

/// Colours with the names of curves, and what dots mean where there are any.
std::vector<LegendEntry> legend_of(const std::vector<FigureCurve>& curves);

Canvas draw_curves(const CurvesPicture& picture, double width);

struct NestedKey {
  std::string name;
  std::vector<std::string> levels;
  std::vector<std::size_t> places;  ///< a level for each setting
};

/// Curves over all settings in a row, above steps that say where each key stands.
struct NestedPicture {
  std::string y_title;
  ScaleKind y_kind = ScaleKind::linear;
  std::vector<NestedKey> keys;      ///< the outermost first
  std::vector<FigureCurve> curves;  ///< over the settings 0, 1, ..., which x has
};

Canvas draw_nested(const NestedPicture& picture, double width);

}  // namespace headlab::tools
