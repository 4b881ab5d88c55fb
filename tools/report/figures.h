// SPDX-License-Identifier: Apache-2.0
/// \file The figures that a report has; each is made by the file of its name, and listed in
/// figures.cpp.
#pragma once

#include <vector>

#include "tools/report/figure.h"

namespace headlab::tools {

// Of a run or of closed forms.
std::vector<Figure> components_figures(const Source& source);
std::vector<Figure> decomposition_figures(const Source& source);
std::vector<Figure> head_covariance_figures(const Source& source);
std::vector<Figure> precision_figures(const Source& source);
// Of verdicts.
std::vector<Figure> verdict_figures(const Source& source);
// Of allocations and maps.
std::vector<Figure> allocation_figures(const Source& source);
std::vector<Figure> growth_figures(const Source& source);
std::vector<Figure> regime_figures(const Source& source);
// Of the heads of a model.
std::vector<Figure> diversity_figures(const Source& source);
std::vector<Figure> alike_figures(const Source& source);

}  // namespace headlab::tools
