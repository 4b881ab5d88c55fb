// SPDX-License-Identifier: Apache-2.0
/// \file A figure over a swept key as curves.
#pragma once

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
  std::string note = {};  ///< written at its end: "slope −0.80"
};

struct CurvesPanel {
  std::string title;
  std::vector<FigureCurve> curves = {};  ///< a colour each
};

struct CurvesPicture {
  std::string x_title, y_title;
  ScaleKind x_kind = ScaleKind::linear, y_kind = ScaleKind::linear;
  std::vector<CurvesPanel> panels = {};  ///< a curve has its name's colour in all of them
};

/// "mean squared error" of "mse"
std::string figure_words(const std::string& figure);

/// "slope −0.81 ± 0.01"
std::string slope_note(const Estimate& slope);

Canvas draw_curves(const CurvesPicture& picture, double width);

}  // namespace headlab::tools
