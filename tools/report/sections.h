// SPDX-License-Identifier: Apache-2.0
/// \file The texts of a report in the order of Morris, White and Crowther (2019): aims,
/// data-generating mechanisms, estimands, methods, performance measures; then verdicts.
#pragma once

#include <string>
#include <vector>

#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// The title of a source: the scenario's name, or what it is.
std::string source_title(const Source& source);

/// The sections of a source before its figures, and those behind them without the provenance.
std::vector<Section> sections_before_figures(const Source& source);
std::vector<Section> sections_behind_figures(const Source& source);

}  // namespace headlab::tools
