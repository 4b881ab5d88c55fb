// SPDX-License-Identifier: Apache-2.0
/// \file Texts of a report on what has conditions: runs, closed forms, studies of depth.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

std::string paragraph(const std::string& text);

/// The parameter of a condition at a path of keys.
const Value& parameter(const Value& condition, std::initializer_list<const char*> path);

/// Where training sets come from, of a document that has the parameters of its scenario.
/// \param sizes  n, as HTML
std::string scenario_html(const Value& document, const std::string& sizes);

std::vector<Section> run_sections(const Source& source);
std::vector<Section> depth_sections(const Source& source);

/// How far simulation and closed forms are apart, where both are there.
std::string compared_html(const Source& source);

}  // namespace headlab::tools
