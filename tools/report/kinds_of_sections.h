// SPDX-License-Identifier: Apache-2.0
/// \file Sections of reports before their figures, by the kind of source.
#pragma once

#include <string>
#include <vector>

#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

std::vector<Section> allocation_sections(const Source& source);
std::vector<Section> map_sections(const Source& source);
std::vector<Section> head_sections(const Source& source);
std::vector<Section> measured_sections(const Source& source);
std::vector<Section> curves_sections(const Source& source);

/// Slopes with their intervals, and crossings: behind the figure.
std::vector<Section> curves_results(const Source& source);

/// The key that a document names, in words.
std::string key_in_words(const Value& document, const char* key);

}  // namespace headlab::tools
