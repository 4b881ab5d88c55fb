// SPDX-License-Identifier: Apache-2.0
/// \file What the report of a study of depth says before its figures.
#pragma once

#include <vector>

#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

/// True for a run, or closed forms, of a stack of layers.
bool is_study_of_depth(const Source& source);

/// Its sections before the figures.
std::vector<Section> depth_sections(const Source& source);

}  // namespace headlab::tools
