// SPDX-License-Identifier: Apache-2.0
/// \file Nested-loop plots (Ruecker and Schwarzer 2014, BMC Medical Research Methodology 14:129): a
/// figure over all conditions of crossed keys in a row, above steps that say where each key stands.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/report/curves_figure.h"

namespace headlab::tools {

struct NestedKey {
  std::string name;
  std::vector<std::string> levels;
  std::vector<std::size_t> places;  ///< a level for each setting
};

struct NestedPicture {
  std::string y_title;
  ScaleKind y_kind = ScaleKind::linear;
  std::vector<NestedKey> keys;      ///< the outermost first
  std::vector<FigureCurve> curves;  ///< over the settings 0, 1, ..., which x has
};

Canvas draw_nested(const NestedPicture& picture, double width);

}  // namespace headlab::tools
