// SPDX-License-Identifier: Apache-2.0
/// \file The figures that a report has; each is made by the file of its name, and listed in
/// figures.cpp.
#pragma once

#include <vector>

#include "tools/report/figure.h"

namespace headlab::tools {

/// Standard errors to either side of a line that its band shows.
inline constexpr double band_errors = 2;

// Of a run or of closed forms.
std::vector<Picture> layers_figures(const Source& source);
std::vector<Picture> components_figures(const Source& source);
std::vector<Picture> difference_figures(const Source& source);
std::vector<Picture> decomposition_figures(const Source& source);
std::vector<Picture> head_covariance_figures(const Source& source);
std::vector<Picture> precision_figures(const Source& source);
// Of verdicts.
std::vector<Picture> verdict_figures(const Source& source);
// Of allocations and maps.
std::vector<Picture> allocation_figures(const Source& source);
std::vector<Picture> growth_figures(const Source& source);
std::vector<Picture> regime_figures(const Source& source);
// Of the heads of a model.
std::vector<Picture> diversity_figures(const Source& source);
std::vector<Picture> alike_figures(const Source& source);

}  // namespace headlab::tools
